import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.BatchMessageListener;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.DefaultAfterRollbackProcessor;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.util.backoff.FixedBackOff;

/** A transactional container of Spring Kafka that copies a topic; now and then its listener fails. */
final class SpringCopy {
    private static final Set<String> failed = ConcurrentHashMap.newKeySet();

    private final KafkaTemplate<String, String> template;
    private final String output;

    private SpringCopy(KafkaTemplate<String, String> template, String output) {
        this.template = template;
        this.output = output;
    }

    public static void main(String[] args) throws InterruptedException {
        String servers = args[0], input = args[1], output = args[2], group = args[3];
        boolean isBatch = args[5].equals("batch");
        DefaultKafkaProducerFactory<String, String> producers =
                new DefaultKafkaProducerFactory<>(
                        Map.of(
                                "bootstrap.servers", servers,
                                "transaction.timeout.ms", "10000",
                                "key.serializer", StringSerializer.class,
                                "value.serializer", StringSerializer.class));
        producers.setTransactionIdPrefix(group + "-");
        SpringCopy copy = new SpringCopy(new KafkaTemplate<>(producers), output);
        ContainerProperties properties = new ContainerProperties(input);
        properties.setGroupId(group);
        properties.setKafkaAwareTransactionManager(new KafkaTransactionManager<>(producers));
        properties.setMessageListener(
                isBatch
                        ? (BatchMessageListener<String, String>) copy::takeAll
                        : (MessageListener<String, String>) copy::take);
        ConcurrentMessageListenerContainer<String, String> container =
                new ConcurrentMessageListenerContainer<>(
                        new DefaultKafkaConsumerFactory<>(consumer(servers, args[6])), properties);
        container.setConcurrency(2);
        container.setAfterRollbackProcessor(
                // By default a record is left out after ten attempts.
                new DefaultAfterRollbackProcessor<>(
                        new FixedBackOff(100, FixedBackOff.UNLIMITED_ATTEMPTS)));
        container.start();
        Thread.currentThread().join();
    }

    private static Map<String, Object> consumer(String servers, String protocol) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("group.protocol", protocol);
        if (protocol.equals("classic")) {
            settings.put("session.timeout.ms", 6000);
        }
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", false);
        settings.put("max.poll.records", 50);
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        return settings;
    }

    private void takeAll(List<ConsumerRecord<String, String>> records) {
        records.forEach(this::take);
    }

    private void take(ConsumerRecord<String, String> record) {
        String value = record.value();
        template.send(output, Copy.partition(value), null, Copy.transformed(value));
        if (Copy.failsFirst(value) && failed.add(value)) {
            throw new IllegalStateException("failed on purpose at " + value);
        }
    }
}
