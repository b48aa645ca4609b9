{{- /* Name of all objects: that of the release, which is "barnabas" in the examples. */ -}}
{{- define "barnabas.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "barnabas.selector" -}}
app.kubernetes.io/name: barnabas
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "barnabas.labels" -}}
{{ include "barnabas.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "barnabas.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* The variables of the broker. A broker of a cluster is reached by its pod's address, one alone by its Service. */ -}}
{{- define "barnabas.variables" -}}
{{- $protocol := ternary "SASL_PLAINTEXT" "PLAINTEXT" (ne .Values.secretName "") -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- if .Values.cluster.enabled }}
- name: KAFKA_LISTENERS
  value: CLIENTS://:9092,BROKERS://:19092
- name: KAFKA_ADVERTISED_LISTENERS
  value: CLIENTS://$(POD_IP):9092,BROKERS://$(POD_IP):19092
- name: KAFKA_LISTENER_SECURITY_PROTOCOL_MAP
  value: CLIENTS:{{ $protocol }},BROKERS:{{ $protocol }}
- name: KAFKA_INTER_BROKER_LISTENER_NAME
  value: BROKERS
- name: KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL
  value: SCRAM-SHA-512
- name: KAFKA_BARNABAS_METADATA_FILE
  value: /etc/kafka/secrets/metadata
- name: KAFKA_LISTENER_NAME_BROKERS_SCRAM___SHA___512_SASL_JAAS_CONFIG_FILE
  value: /etc/kafka/secrets/broker.jaas
{{- else }}
- name: KAFKA_LISTENERS
  value: CLIENTS://:9092
- name: KAFKA_ADVERTISED_LISTENERS
  value: CLIENTS://{{ include "barnabas.name" . }}.{{ .Release.Namespace }}.svc:9092
- name: KAFKA_LISTENER_SECURITY_PROTOCOL_MAP
  value: CLIENTS:{{ $protocol }}
{{- end }}
{{- if .Values.secretName }}
- name: KAFKA_SASL_ENABLED_MECHANISMS
  value: SCRAM-SHA-512
- name: KAFKA_AUTHORIZER_CLASS_NAME
  value: org.apache.kafka.metadata.authorizer.StandardAuthorizer
- name: KAFKA_SUPER_USERS
  value: {{ range $index, $user := .Values.superUsers }}{{ if $index }};{{ end }}User:{{ $user }}{{ end }}
- name: KAFKA_BARNABAS_SCRAM_CREDENTIALS_FILE
  value: /etc/kafka/secrets/users
- name: KAFKA_BARNABAS_HTTP_BEARER_TOKEN_FILE
  value: /etc/kafka/secrets/http-token
{{- end }}
- name: KAFKA_BARNABAS_SHUTDOWN_TIMEOUT_MS
  value: "30000"
{{- end -}}

{{- /* The pod of a broker, alone or of a cluster. */ -}}
{{- define "barnabas.pod" -}}
metadata:
  labels:
    {{- include "barnabas.labels" . | nindent 4 }}
  annotations:
    checksum/settings: {{ toJson .Values.settings | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  # Or a Service called kafka would set KAFKA_PORT.
  enableServiceLinks: false
  # More than barnabas.shutdown.timeout.ms and barnabas.shutdown.checkpoint.timeout.ms together.
  terminationGracePeriodSeconds: 60
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- if .Values.cluster.enabled }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "barnabas.selector" . | nindent 16 }}
  {{- end }}
  containers:
    - name: broker
      image: {{ include "barnabas.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        {{- include "barnabas.variables" . | nindent 8 }}
      ports:
        - name: clients
          containerPort: 9092
        {{- if .Values.cluster.enabled }}
        - name: brokers
          containerPort: 19092
        {{- end }}
        - name: http
          containerPort: 9644
      # After a crash a broker reads its journal, and one of a cluster may wait for PostgreSQL: both respond to
      # /livez, and another start would not help.
      startupProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 2
        timeoutSeconds: 5
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop:
            - ALL
      volumeMounts:
        - name: data
          mountPath: /var/lib/kafka/data
        - name: temporary
          mountPath: /tmp
        - name: settings
          mountPath: /mnt/shared/config
          readOnly: true
        {{- if .Values.secretName }}
        - name: secrets
          mountPath: /etc/kafka/secrets
          readOnly: true
        {{- end }}
  volumes:
    - name: temporary
      emptyDir:
        sizeLimit: 64Mi
    - name: settings
      configMap:
        name: {{ include "barnabas.name" . }}
    {{- if .Values.secretName }}
    - name: secrets
      secret:
        secretName: {{ .Values.secretName }}
        defaultMode: 0440
    {{- end }}
    {{- if .Values.cluster.enabled }}
    # Copies of all that the broker leads: size it for what one leads while another is unavailable.
    - name: data
      emptyDir:
        sizeLimit: {{ .Values.cacheSize }}
    {{- end }}
{{- end -}}
