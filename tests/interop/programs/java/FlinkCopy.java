import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A Flink cluster in this process that copies a topic, from its latest checkpoint on. */
final class FlinkCopy {
    public static void main(String[] args) throws Exception {
        String servers = args[0], input = args[1], output = args[2], group = args[3];
        Path checkpoints = Path.of(args[4], "checkpoints");
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(servers)
                        .setTopics(input)
                        .setGroupId(group)
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setProperty("isolation.level", "read_committed")
                        .setValueOnlyDeserializer(new SimpleStringSchema())
                        .build();
        KafkaSink<String> sink =
                KafkaSink.<String>builder()
                        .setBootstrapServers(servers)
                        .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                        .setTransactionalIdPrefix(group)
                        .setTransactionNamingStrategy(TransactionNamingStrategy.valueOf(args[5]))
                        .setProperty("transaction.timeout.ms", "120000")
                        .setRecordSerializer(serializer(output))
                        .build();
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(2, configuration(checkpoints));
        environment
                .fromSource(source, WatermarkStrategy.noWatermarks(), input)
                .map(Copy::transformed)
                .returns(Types.STRING)
                .sinkTo(sink)
                .name(output);
        environment.execute(group);
    }

    private static KafkaRecordSerializationSchema<String> serializer(String output) {
        return KafkaRecordSerializationSchema.<String>builder()
                .setTopic(output)
                .setPartitioner(
                        (copied, key, value, topic, partitions) ->
                                Copy.partition(Copy.original((String) copied)))
                .setValueSerializationSchema(new SimpleStringSchema())
                .build();
    }

    private static Configuration configuration(Path checkpoints) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(500));
        configuration.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        configuration.set(
                CheckpointingOptions.CHECKPOINTS_DIRECTORY, checkpoints.toUri().toString());
        configuration.set(
                CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
                ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(
                RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, Integer.MAX_VALUE);
        configuration.set(
                RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(500));
        latest(checkpoints)
                .ifPresent(
                        path -> configuration.set(StateRecoveryOptions.SAVEPOINT_PATH, path.toString()));
        return configuration;
    }

    /** The complete checkpoint with the highest number: a restored job counts on. */
    private static Optional<Path> latest(Path checkpoints) throws Exception {
        if (!Files.exists(checkpoints)) {
            return Optional.empty();
        }
        try (Stream<Path> paths = Files.walk(checkpoints)) {
            return paths.filter(path -> path.endsWith("_metadata"))
                    .map(Path::getParent)
                    .max(Comparator.comparingInt(FlinkCopy::number));
        }
    }

    private static int number(Path checkpoint) {
        return Integer.parseInt(checkpoint.getFileName().toString().replace("chk-", ""));
    }
}
