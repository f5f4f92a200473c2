/*
 * Weir's exchange and gateway beside the SoupBinTCP library nassau-core of Parity Trading (Maven Central).
 *
 * Does what the client of orders.py does: logs in with the library, places orders, drops the connection half-way,
 * resumes by sequence number, and ends with the message list the other side has. OUCH 5.0 messages are packed here
 * from the field offsets of the specification: a separate implementation, on purpose.
 *
 * Run by `cargo xtask interop`.
 */

import com.paritytrading.nassau.MessageListener;
import com.paritytrading.nassau.soupbintcp.SoupBinTCP;
import com.paritytrading.nassau.soupbintcp.SoupBinTCPClient;
import com.paritytrading.nassau.soupbintcp.SoupBinTCPClientStatusListener;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;

/** The client. Whatever is not as it must be is an IOException with a sentence, and ends the program with 1. */
public final class Orders {
    private static final String USAGE =
        "usage: Orders --port PORT [--host HOST] [--user NAME] [--password WORD] [--orders 2..1000000]";
    private static final int ORDERS_MAX = 1_000_000;
    private static final int IN_FLIGHT_MAX = 200;

    private static final int ENTER_BYTES = 47;
    private static final int ACCEPTED_BYTES = 64;
    private static final int TIMESTAMP_OFFSET = 1;
    private static final int ORDER_REFERENCE_OFFSET = 36;

    private Orders() {}

    public static void main(String[] words) {
        Asked asked;
        try {
            asked = Asked.parse(words);
        } catch (IllegalArgumentException error) {
            System.err.println(error.getMessage() + "\n" + USAGE);
            System.exit(2);
            return;
        }
        try {
            System.out.println("client on nassau-core: " + run(asked));
        } catch (IOException error) {
            System.err.println("client on nassau-core: " + error.getMessage());
            System.exit(1);
        }
    }

    private static String run(Asked asked) throws IOException {
        List<byte[]> messages = new ArrayList<>();
        try (Line line = Line.login(asked, messages)) {
            place(line, messages, 1, asked.orders() / 2);
            // Nobody waits for the answers: what is still under way when the line goes must come after the next login.
            line.drop();
        }
        int have = messages.size();
        try (Line line = Line.login(asked, messages)) {
            // What was lost with the line is sent again with its number; what was not is ignored by the other side.
            place(line, messages, have + 1, asked.orders());
            line.until(asked.orders());
            line.logout();
        }
        checkCount(messages, asked.orders());
        for (int number = 1; number <= asked.orders(); number++) {
            checkAccepted(messages.get(number - 1), number);
        }

        List<byte[]> again = new ArrayList<>();
        try (Line line = Line.login(asked, again)) {
            line.until(asked.orders());
            line.logout();
        }
        checkCount(again, asked.orders());
        for (int number = 1; number <= asked.orders(); number++) {
            if (!Arrays.equals(again.get(number - 1), messages.get(number - 1))) {
                throw new IOException("message " + number + " of a full replay differs from what came at first");
            }
        }
        return asked.orders() + " orders, " + have + " answers before the line was dropped, replay equal";
    }

    /** Places the orders `first` to `last`. Each gets one answer, in order, so the messages show what is in flight. */
    private static void place(Line line, List<byte[]> messages, int first, int last) throws IOException {
        for (int number = first; number <= last; number++) {
            if (number - messages.size() > IN_FLIGHT_MAX) {
                line.until(number - IN_FLIGHT_MAX / 2);
            }
            line.send(enter(number));
        }
    }

    /** An order to buy; its price and quantity follow from its number, so that the answer can be checked. */
    private static ByteBuffer enter(int number) {
        return ByteBuffer.allocate(ENTER_BYTES)
            .put((byte) 'O')
            .putInt(number)
            .put((byte) 'B')
            .putInt(quantity(number))
            .put(ascii("WEIR    "))
            .putLong(price(number))
            // Time in force, display, capacity, intermarket sweep, cross type.
            .put(ascii("0YANN"))
            .put(ascii(clientOrderId(number)))
            .putShort((short) 0)
            .flip();
    }

    /** The acceptance of that order. The other side chooses the time and its own number of the order. */
    private static ByteBuffer accepted(int number, long timestamp, long orderReference) {
        return ByteBuffer.allocate(ACCEPTED_BYTES)
            .put((byte) 'A')
            .putLong(timestamp)
            .putInt(number)
            .put((byte) 'B')
            .putInt(quantity(number))
            .put(ascii("WEIR    "))
            .putLong(price(number))
            .put(ascii("0Y"))
            .putLong(orderReference)
            // The rest of the order's letters, and that it is live.
            .put(ascii("ANNL"))
            .put(ascii(clientOrderId(number)))
            .putShort((short) 0)
            .flip();
    }

    private static int quantity(int number) {
        return 1 + number % 1000;
    }

    private static long price(int number) {
        return 10_000 + number % 5000 * 100L;
    }

    private static String clientOrderId(int number) {
        return String.format(Locale.ROOT, "J%013d", number);
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static void checkCount(List<byte[]> messages, int orders) throws IOException {
        if (messages.size() != orders) {
            throw new IOException(messages.size() + " messages for " + orders + " orders");
        }
    }

    /** Fails unless this is the acceptance of that order, byte by byte. */
    private static void checkAccepted(byte[] message, int number) throws IOException {
        String found = HexFormat.of().formatHex(message);
        if (message.length != ACCEPTED_BYTES) {
            throw new IOException("order " + number + ": the answer has " + message.length + " bytes: " + found);
        }
        ByteBuffer fields = ByteBuffer.wrap(message);
        ByteBuffer wanted =
            accepted(number, fields.getLong(TIMESTAMP_OFFSET), fields.getLong(ORDER_REFERENCE_OFFSET));
        int offset = wanted.mismatch(fields);
        if (offset >= 0) {
            String text = HexFormat.of().formatHex(wanted.array());
            throw new IOException(
                "order " + number + ": byte " + offset + " of the answer differs: " + found + " instead of " + text);
        }
    }

    /** What the command line asks for. */
    private record Asked(String host, int port, String user, String password, int orders) {
        static Asked parse(String[] words) {
            String host = "127.0.0.1";
            String user = "C00001";
            String password = "DEMO";
            int port = 0;
            int orders = 10_000;
            for (int index = 0; index < words.length; index += 2) {
                if (index + 1 == words.length) {
                    throw new IllegalArgumentException(words[index] + " needs a value");
                }
                String value = words[index + 1];
                switch (words[index]) {
                    case "--host" -> host = value;
                    case "--port" -> port = number(words[index], value, 1, 65_535);
                    case "--user" -> user = word(words[index], value, 6);
                    case "--password" -> password = word(words[index], value, 10);
                    case "--orders" -> orders = number(words[index], value, 2, ORDERS_MAX);
                    default -> throw new IllegalArgumentException("unknown option " + words[index]);
                }
            }
            if (port == 0) {
                throw new IllegalArgumentException("--port is needed");
            }
            return new Asked(host, port, user, password, orders);
        }

        private static int number(String option, String value, int least, int most) {
            try {
                int number = Integer.parseInt(value);
                if (number >= least && number <= most) {
                    return number;
                }
            } catch (NumberFormatException error) {
                // The sentence below says it.
            }
            throw new IllegalArgumentException(option + " is a number from " + least + " to " + most);
        }

        /** The fields of a login have fixed lengths. */
        private static String word(String option, String value, int charactersMax) {
            if (value.isEmpty() || value.length() > charactersMax) {
                throw new IllegalArgumentException(option + " has 1 to " + charactersMax + " characters");
            }
            return value;
        }
    }

    /** One connection that is logged in. What comes on it is added to the account's messages. */
    private static final class Line implements MessageListener, SoupBinTCPClientStatusListener, Closeable {
        private static final long PATIENCE_MS = 60_000;
        private static final long KEEP_ALIVE_MS = 500;
        private static final int LOGINS_MAX = 100;
        private static final long BETWEEN_LOGINS_MS = 50;

        private final List<byte[]> messages;
        private final long wanted;
        private final Selector selector;
        private final SocketChannel channel;
        private final SoupBinTCPClient client;
        private boolean isAccepted;
        private byte rejectReason;

        private Line(Asked asked, List<byte[]> messages) throws IOException {
            this.messages = messages;
            wanted = messages.size() + 1;
            InetSocketAddress address = new InetSocketAddress(asked.host(), asked.port());
            if (address.isUnresolved()) {
                throw new IOException("no address is known for " + asked.host());
            }
            channel = SocketChannel.open(address);
            channel.configureBlocking(false);
            selector = Selector.open();
            channel.register(selector, SelectionKey.OP_READ);
            client = new SoupBinTCPClient(channel, this, this);
        }

        /** Logs in and asks for the message after those that are there. */
        static Line login(Asked asked, List<byte[]> messages) throws IOException {
            for (int count = 1; ; count++) {
                Line line = new Line(asked, messages);
                if (line.isAccepted(asked)) {
                    return line;
                }
                line.close();
                // The other side may not know yet that the line before this one is gone.
                boolean mayCome = line.rejectReason == SoupBinTCP.LOGIN_REJECT_CODE_SESSION_NOT_AVAILABLE;
                if (!mayCome || count == LOGINS_MAX) {
                    throw new IOException("login " + count + " was rejected: " + (char) line.rejectReason);
                }
                pause();
            }
        }

        private static void pause() throws IOException {
            try {
                Thread.sleep(BETWEEN_LOGINS_MS);
            } catch (InterruptedException error) {
                throw new IOException("interrupted between two logins", error);
            }
        }

        private boolean isAccepted(Asked asked) throws IOException {
            SoupBinTCP.LoginRequest request = new SoupBinTCP.LoginRequest();
            request.setUsername(asked.user());
            request.setPassword(asked.password());
            // Blank: the current one.
            request.setRequestedSession("");
            request.setRequestedSequenceNumber(wanted);
            client.login(request);
            long deadline = deadline();
            while (!isAccepted && rejectReason == 0) {
                takeIn(deadline);
            }
            return isAccepted;
        }

        void send(ByteBuffer message) throws IOException {
            client.send(message);
        }

        /** Waits until so many messages are there. */
        void until(int count) throws IOException {
            long deadline = deadline();
            while (messages.size() < count) {
                takeIn(deadline);
            }
        }

        /** Takes the line away without a word: what is under way in either direction is lost. */
        void drop() throws IOException {
            channel.setOption(StandardSocketOptions.SO_LINGER, 0);
            close();
        }

        /** Says goodbye, upon which the other side closes. */
        void logout() throws IOException {
            client.logout();
            long deadline = deadline();
            while (isOpenAfterWaiting(deadline)) {
                // Whatever still comes is in the list, and one too many.
            }
        }

        @Override
        public void close() throws IOException {
            channel.close();
            // Only with this the channel is really gone.
            selector.close();
        }

        private static long deadline() {
            return System.nanoTime() + PATIENCE_MS * 1_000_000;
        }

        private void takeIn(long deadline) throws IOException {
            if (!isOpenAfterWaiting(deadline)) {
                throw new IOException("the other side closed the line after message " + messages.size());
            }
            // Before the login is answered and after the logout there is no session to keep alive.
            if (isAccepted) {
                client.keepAlive();
            }
        }

        /** Waits a little and hands out what came. */
        private boolean isOpenAfterWaiting(long deadline) throws IOException {
            if (System.nanoTime() - deadline >= 0) {
                throw new IOException("waited for " + PATIENCE_MS / 1000 + " s after message " + messages.size());
            }
            selector.select(KEEP_ALIVE_MS);
            selector.selectedKeys().clear();
            return client.receive() >= 0;
        }

        @Override
        public void message(ByteBuffer buffer) {
            byte[] message = new byte[buffer.remaining()];
            buffer.get(message);
            messages.add(message);
        }

        @Override
        public void loginAccepted(SoupBinTCPClient session, SoupBinTCP.LoginAccepted payload) throws IOException {
            if (isAccepted || payload.getSequenceNumber() != wanted) {
                throw new IOException(
                    "the login asked for message " + wanted + " and was promised " + payload.getSequenceNumber());
            }
            isAccepted = true;
        }

        @Override
        public void loginRejected(SoupBinTCPClient session, SoupBinTCP.LoginRejected payload) {
            rejectReason = payload.getRejectReasonCode();
        }

        @Override
        public void heartbeatTimeout(SoupBinTCPClient session) throws IOException {
            throw new IOException("the other side is silent after message " + messages.size());
        }

        @Override
        public void endOfSession(SoupBinTCPClient session) throws IOException {
            throw new IOException("the other side ended the session after message " + messages.size());
        }
    }
}
