import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes one invoice for each order, exactly once. */
final class Invoicing {
    private static final String SERVERS = System.getenv("KAFKA_BOOTSTRAP_SERVERS");

    public static void main(String[] args) {
        String name = "invoicing-" + args[0];
        Map<String, Object> consumer = new HashMap<>();
        consumer.put("bootstrap.servers", SERVERS);
        consumer.put("group.id", "invoicing");
        consumer.put("group.instance.id", name); // a restarted instance gets its partitions at once
        consumer.put("session.timeout.ms", 6000);
        consumer.put("enable.auto.commit", false);
        consumer.put("isolation.level", "read_committed");
        consumer.put("auto.offset.reset", "earliest");
        consumer.put("max.poll.records", 50);
        Map<String, Object> producer = new HashMap<>();
        producer.put("bootstrap.servers", SERVERS);
        producer.put("transactional.id", name);
        producer.put("transaction.timeout.ms", 10_000);
        // An error ends the program, and closing the consumer leaves its group. A supervisor starts
        // the program again, and it continues at the committed offsets.
        try (var orders =
                        new KafkaConsumer<>(
                                consumer, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                var invoices =
                        new KafkaProducer<>(
                                producer, new ByteArraySerializer(), new ByteArraySerializer())) {
            invoices.initTransactions(); // aborts what a previous run left open
            orders.subscribe(List.of("orders"));
            while (true) {
                ConsumerRecords<byte[], byte[]> batch = orders.poll(Duration.ofMillis(200));
                if (!batch.isEmpty()) {
                    invoice(invoices, batch, orders.groupMetadata());
                }
            }
        }
    }

    private static void invoice(
            KafkaProducer<byte[], byte[]> invoices,
            ConsumerRecords<byte[], byte[]> batch,
            ConsumerGroupMetadata member) {
        invoices.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> order : batch) {
            invoices.send(
                    new ProducerRecord<>(
                            "invoices", null, order.key(), order.value(), order.headers()));
        }
        invoices.flush();
        invoices.sendOffsetsToTransaction(batch.nextOffsets(), member);
        invoices.commitTransaction();
    }
}
