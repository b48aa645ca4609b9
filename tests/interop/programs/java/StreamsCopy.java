import java.nio.file.Path;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.StreamPartitioner;

/** Kafka Streams: each value goes through a repartition topic and a store that counts it. */
final class StreamsCopy {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[3]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(args[4], "state").toString());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put("group.protocol", "classic");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        settings.put("session.timeout.ms", 6000);
        settings.put("auto.offset.reset", "earliest");
        KafkaStreams streams =
                new KafkaStreams(topology(args[1], args[2]).build(), settings);
        streams.setUncaughtExceptionHandler(
                error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.start();
    }

    private static StreamsBuilder topology(String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        StreamPartitioner<String, Object> byNumber =
                (topic, value, ignored, count) -> Optional.of(Set.of(Copy.partition(value)));
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
                .selectKey((key, value) -> value)
                .repartition(
                        Repartitioned.<String, String>as("by-number")
                                .withNumberOfPartitions(Copy.PARTITIONS)
                                .withStreamPartitioner(byNumber::partitions))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                .count()
                .toStream()
                // A value that was counted twice is one that the judge does not expect.
                .mapValues((value, count) -> Copy.transformed(value) + (count > 1 ? count : ""))
                .to(
                        output,
                        Produced.<String, String>with(Serdes.String(), Serdes.String())
                                .withStreamPartitioner(byNumber::partitions));
        return builder;
    }
}
