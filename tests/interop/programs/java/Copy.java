/** The transformation of all programs: each record of the input becomes one of the output. */
final class Copy {
    static final int PARTITIONS = 3;

    private Copy() {}

    static String transformed(String value) {
        return "<" + value + ">";
    }

    static String original(String copied) {
        return copied.substring(1, copied.length() - 1);
    }

    /** The partition of an output, by the number at the end of the input's value. */
    static int partition(String value) {
        return Integer.parseInt(value.substring(value.lastIndexOf('.') + 1)) % PARTITIONS;
    }

    /** Whether a listener is to fail when it gets this value for the first time. */
    static boolean failsFirst(String value) {
        return value.endsWith("77");
    }
}
