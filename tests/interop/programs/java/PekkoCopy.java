import java.util.concurrent.CompletionStage;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.pekko.Done;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.kafka.ConsumerSettings;
import org.apache.pekko.kafka.ProducerMessage;
import org.apache.pekko.kafka.ProducerSettings;
import org.apache.pekko.kafka.Subscriptions;
import org.apache.pekko.kafka.javadsl.Transactional;

/** A transactional source and sink of Pekko that copy a topic until one of them fails. */
final class PekkoCopy {
    public static void main(String[] args) {
        String servers = args[0], input = args[1], output = args[2], group = args[3];
        ActorSystem system = ActorSystem.create("copy");
        ConsumerSettings<String, String> consumer =
                ConsumerSettings.create(system, new StringDeserializer(), new StringDeserializer())
                        .withBootstrapServers(servers)
                        .withGroupId(group)
                        .withProperty("session.timeout.ms", "6000")
                        .withProperty("auto.offset.reset", "earliest");
        ProducerSettings<String, String> producer =
                ProducerSettings.create(system, new StringSerializer(), new StringSerializer())
                        .withBootstrapServers(servers)
                        .withProperty("transaction.timeout.ms", "10000");
        CompletionStage<Done> end =
                Transactional.source(consumer, Subscriptions.topics(input))
                        .map(
                                message ->
                                        ProducerMessage.single(
                                                copied(message.record().value(), output),
                                                message.partitionOffset()))
                        .runWith(Transactional.sink(producer, group), system);
        end.whenComplete(
                (done, error) -> {
                    if (error != null) {
                        error.printStackTrace();
                    }
                    // What started it starts it again.
                    Runtime.getRuntime().halt(3);
                });
    }

    private static ProducerRecord<String, String> copied(String value, String output) {
        return new ProducerRecord<>(output, Copy.partition(value), null, Copy.transformed(value));
    }
}
