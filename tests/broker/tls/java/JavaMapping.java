import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Reads the hex of rules and of a name from each line, and prints the hex of what Kafka makes of
 * the name, or none (no rule applies), failed (a rule applies and throws), refused (bad rules).
 */
public class JavaMapping {
    public static void main(String[] arguments) throws IOException {
        HexFormat hex = HexFormat.of();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] given = line.split(" ", -1);
            String rules = new String(hex.parseHex(given[0]), StandardCharsets.UTF_8);
            String name = new String(hex.parseHex(given[1]), StandardCharsets.UTF_8);
            System.out.println(result(rules, name));
        }
    }

    private static String result(String rules, String name) {
        SslPrincipalMapper mapper;
        try {
            mapper = SslPrincipalMapper.fromRules(rules);
        } catch (RuntimeException refused) {
            return "refused";
        }
        try {
            byte[] mapped = mapper.getName(name).getBytes(StandardCharsets.UTF_8);
            return "=" + HexFormat.of().formatHex(mapped);
        } catch (IOException none) {
            return "none";
        } catch (RuntimeException failed) {
            return "failed";
        }
    }
}
