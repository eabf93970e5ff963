// SPDX-License-Identifier: Apache-2.0
// A TLS 1.3 server with many threads, each of which accepts, shakes hands, says one line and closes. The key is in a
// PKCS #12 file or in a token. It ends when its standard input does, and prints what it did and what processor time it took.
//
//   java TlsServer.java 4433 16 web.p12 PASSWORD
//   java TlsServer.java 4433 16 pkcs11.cfg PIN        (SunPKCS11's configuration, whose name ends in .cfg)

import java.io.FileInputStream;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.security.KeyStore;
import java.security.Provider;
import java.security.Security;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;

public final class TlsServer {
    private static final AtomicLong HANDSHAKES = new AtomicLong();
    private static final AtomicLong FAILURES = new AtomicLong();

    public static void main(String[] args) throws Exception {
        if (args.length != 4) {
            System.err.println("usage: java TlsServer.java PORT THREADS STORE PASSWORD");
            System.exit(2);
        }
        // Every handshake is a full one.
        System.setProperty("jdk.tls.server.enableSessionTicketExtension", "false");
        char[] password = args[3].toCharArray();
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store(args[2], password), password);
        SSLContext context = SSLContext.getInstance("TLSv1.3");
        context.init(keys.getKeyManagers(), null, null);
        SSLServerSocket listener = (SSLServerSocket) context.getServerSocketFactory()
                .createServerSocket(Integer.parseInt(args[0]), 1024, InetAddress.getLoopbackAddress());
        listener.setEnabledProtocols(new String[] {"TLSv1.3"});
        for (int at = Integer.parseInt(args[1]); at > 0; at--) {
            Thread thread = new Thread(() -> serve(listener));
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
            // until the end
        }
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        System.out.printf("{\"handshakes\": %d, \"failures\": %d, \"cpu_seconds\": %.6f}%n",
                HANDSHAKES.get(), FAILURES.get(), system.getProcessCpuTime() / 1e9);
    }

    private static KeyStore store(String name, char[] password) throws Exception {
        KeyStore store;
        if (name.endsWith(".cfg")) {
            Provider provider = Security.getProvider("SunPKCS11").configure(name);
            Security.addProvider(provider);
            store = KeyStore.getInstance("PKCS11", provider);
            store.load(null, password);
        } else {
            store = KeyStore.getInstance("PKCS12");
            try (FileInputStream file = new FileInputStream(name)) {
                store.load(file, password);
            }
        }
        return store;
    }

    private static void serve(SSLServerSocket listener) {
        while (true) {
            try (SSLSocket connection = (SSLSocket) listener.accept()) {
                connection.setTcpNoDelay(true);
                connection.getOutputStream().write("hello\n".getBytes());
                HANDSHAKES.incrementAndGet();
            } catch (java.io.IOException failure) {
                FAILURES.incrementAndGet();
            }
        }
    }
}
