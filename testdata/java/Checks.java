// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.security.spec.AlgorithmParameterSpec;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.MGF1ParameterSpec;
import java.security.spec.PSSParameterSpec;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.KeyGenerator;
import javax.crypto.Mac;
import javax.crypto.NoSuchPaddingException;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/**
 * Twenty-one things that a Java program does, each without naming a provider: {@code Checks CONFIGURATION PIN last|first}. The token's provider
 * comes last, where keys in the token bring their work to it, or first, where it does all that it has. Each line says who did it.
 */
public final class Checks {
    private static final byte[] MESSAGE = "what is signed, sealed and digested ".repeat(40).getBytes(StandardCharsets.UTF_8);
    private static final PSSParameterSpec PSS = new PSSParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, 32, 1);
    private static final String OAEP = "RSA/ECB/OAEPWithSHA-256AndMGF1Padding";

    private final Provider token;
    private final boolean first;
    private final KeyStore store;
    private int passed;

    private Checks(String configuration, String pin, boolean first) throws Exception {
        this.first = first;
        token = Security.getProvider("SunPKCS11").configure(configuration);
        Security.insertProviderAt(token, first ? 1 : Security.getProviders().length + 1);
        store = KeyStore.getInstance("PKCS11", token);
        store.load(null, pin.toCharArray());
        for (String alias : new String[] {"jrsa", "jec"}) {
            // So it is the token that signs, whoever is said to.
            require(key(alias).getEncoded() == null, alias + " can be read");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Checks checks = new Checks(arguments[0], arguments[1], arguments[2].equals("first"));
        checks.signatures();
        checks.ciphers();
        checks.digests();
        checks.keys();
        checks.connections();
        System.out.println(checks.passed + " checks passed");
    }

    private interface Check {
        /** The name of the provider that did it. */
        String run() throws Exception;
    }

    /** What is done by the token's provider wherever that stands. */
    private void byToken(String what, Check check) throws Exception {
        by(what, token.getName(), check);
    }

    /** What the token's provider does where it is first, and {@code other} does where that is before it. */
    private void byOrder(String what, String other, Check check) throws Exception {
        by(what, first ? token.getName() : other, check);
    }

    private void by(String what, String expected, Check check) throws Exception {
        String by = check.run();
        require(by.equals(expected), what + " was done by " + by);
        System.out.println(what + ": " + by);
        passed++;
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private interface Refused {
        void run() throws GeneralSecurityException;
    }

    private static void throwsOne(Class<? extends Exception> expected, Refused work, String what) throws Exception {
        try {
            work.run();
        } catch (GeneralSecurityException thrown) {
            require(expected.isInstance(thrown), what + ": " + thrown);
            return;
        }
        throw new AssertionError(what + " throws nothing");
    }

    private PrivateKey key(String alias) throws Exception {
        return (PrivateKey) store.getKey(alias, null);
    }

    private PublicKey publicKey(String alias) throws Exception {
        return store.getCertificate(alias).getPublicKey();
    }

    private void signatures() throws Exception {
        byToken("SHA256withRSA", () -> signs(Signature.getInstance("SHA256withRSA"), "jrsa", null));
        byToken("SHA512withRSA", () -> signs(Signature.getInstance("SHA512withRSA"), "jrsa", null));
        byToken("SHA256withECDSA", () -> signs(Signature.getInstance("SHA256withECDSA"), "jec", null));
        byToken("RSASSA-PSS, its parameters after the key", () -> signs(Signature.getInstance("RSASSA-PSS"), "jrsa", PSS));
        byToken("RSASSA-PSS, its parameters before the key", this::parametersFirst);
    }

    private String signs(Signature signer, String alias, PSSParameterSpec parameters) throws Exception {
        signer.initSign(key(alias));
        if (parameters != null && signer.getParameters() == null) {
            signer.setParameter(parameters);
        }
        signer.update(MESSAGE);
        byte[] signature = signer.sign();
        Signature verifier = Signature.getInstance(signer.getAlgorithm(), alias.equals("jec") ? "SunEC" : "SunRsaSign");
        verifier.initVerify(publicKey(alias));
        if (parameters != null) {
            verifier.setParameter(parameters);
        }
        verifier.update(MESSAGE);
        require(verifier.verify(signature), "the JDK refuses the signature");
        return signer.getProvider().getName();
    }

    /** The JDK chooses a provider at the first call, which knows no key yet: its own, unless the token's is named or first. */
    private String parametersFirst() throws Exception {
        if (!first) {
            Signature early = Signature.getInstance("RSASSA-PSS");
            early.setParameter(PSS);
            require(early.getProvider().getName().equals("SunRsaSign"), "the JDK chooses another");
            throwsOne(InvalidKeyException.class, () -> early.initSign(keyUnchecked("jrsa")), "SunRsaSign with a key of the token");
        }
        Signature signer = Signature.getInstance("RSASSA-PSS", token);
        signer.setParameter(PSS);
        return signs(signer, "jrsa", PSS);
    }

    private PrivateKey keyUnchecked(String alias) throws GeneralSecurityException {
        return (PrivateKey) store.getKey(alias, null);
    }

    private void ciphers() throws Exception {
        byToken("RSA/ECB/PKCS1Padding", () -> {
            Cipher sealing = Cipher.getInstance("RSA/ECB/PKCS1Padding", "SunJCE");
            sealing.init(Cipher.ENCRYPT_MODE, publicKey("jrsa"));
            Cipher opening = Cipher.getInstance("RSA/ECB/PKCS1Padding");
            opening.init(Cipher.DECRYPT_MODE, key("jrsa"));
            require(new String(opening.doFinal(sealing.doFinal("secret".getBytes(StandardCharsets.UTF_8))),
                    StandardCharsets.UTF_8).equals("secret"), "RSA");
            return opening.getProvider().getName();
        });
        by(OAEP, "SunJCE", this::noOaep);
        byOrder("AES/CBC/PKCS5Padding", "SunJCE", () -> seals("AES/CBC/PKCS5Padding", new IvParameterSpec(new byte[16])));
        byOrder("AES/CTR/NoPadding", "SunJCE", () -> seals("AES/CTR/NoPadding", new IvParameterSpec(new byte[16])));
        byOrder("AES/GCM/NoPadding", "SunJCE", () -> seals("AES/GCM/NoPadding", new GCMParameterSpec(128, new byte[12])));
        byOrder("ChaCha20-Poly1305", "SunJCE", () -> seals("ChaCha20-Poly1305", new IvParameterSpec(new byte[12])));
    }

    /** SunPKCS11 has no OAEP, whatever a module has: named it throws, and the default order finds the JDK's, for public keys. */
    private String noOaep() throws Exception {
        throwsOne(NoSuchPaddingException.class, () -> Cipher.getInstance(OAEP, token), "OAEP of SunPKCS11");
        Cipher cipher = Cipher.getInstance(OAEP);
        cipher.init(Cipher.ENCRYPT_MODE, publicKey("jrsa"));
        require(cipher.doFinal(Arrays.copyOf(MESSAGE, 32)).length == 256, "OAEP");
        throwsOne(InvalidKeyException.class, () -> Cipher.getInstance(OAEP).init(Cipher.DECRYPT_MODE, keyUnchecked("jrsa")),
                "OAEP with a key of the token");
        return cipher.getProvider().getName();
    }

    /** A key in software, which every provider takes; the other one opens what the one has sealed. */
    private String seals(String name, AlgorithmParameterSpec parameters) throws Exception {
        SecretKey key = new SecretKeySpec(Arrays.copyOf(MESSAGE, 32), name.split("[/-]")[0]);
        Cipher sealing = Cipher.getInstance(name);
        sealing.init(Cipher.ENCRYPT_MODE, key, parameters);
        byte[] sealed = sealing.doFinal(MESSAGE);
        Cipher opening = Cipher.getInstance(name, first ? "SunJCE" : token.getName());
        opening.init(Cipher.DECRYPT_MODE, key, parameters);
        require(Arrays.equals(opening.doFinal(sealed), MESSAGE), name);
        return sealing.getProvider().getName();
    }

    private void digests() throws Exception {
        byOrder("SHA-256", "SUN", () -> {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            require(Arrays.equals(digest.digest(MESSAGE), MessageDigest.getInstance("SHA-256", "SUN").digest(MESSAGE)), "SHA-256");
            return digest.getProvider().getName();
        });
        byOrder("SHA-256, cloned", "SUN", () -> {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(MESSAGE, 0, 100);
            MessageDigest copy = (MessageDigest) digest.clone();
            digest.update(MESSAGE, 100, 10);
            copy.update(MESSAGE, 100, MESSAGE.length - 100);
            require(Arrays.equals(copy.digest(), MessageDigest.getInstance("SHA-256", "SUN").digest(MESSAGE)), "the clone");
            return copy.getProvider().getName();
        });
        byOrder("HmacSHA256", "SunJCE", () -> {
            SecretKey key = new SecretKeySpec(Arrays.copyOf(MESSAGE, 32), "HmacSHA256");
            Mac ours = Mac.getInstance("HmacSHA256");
            ours.init(key);
            Mac theirs = Mac.getInstance("HmacSHA256", "SunJCE");
            theirs.init(key);
            require(Arrays.equals(ours.doFinal(MESSAGE), theirs.doFinal(MESSAGE)), "HMAC");
            return ours.getProvider().getName();
        });
        byOrder("SecureRandom", "SUN", () -> {
            SecureRandom random = new SecureRandom();
            random.nextBytes(new byte[64]);
            return random.getProvider().getName();
        });
    }

    private void keys() throws Exception {
        byOrder("KeyPairGenerator RSA", "SunRsaSign", () -> {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
            generator.initialize(2048);
            require(generator.generateKeyPair().getPrivate().getAlgorithm().equals("RSA"), "RSA");
            return generator.getProvider().getName();
        });
        byOrder("KeyPairGenerator EC and KeyAgreement ECDH", "SunEC", this::agrees);
        byOrder("KeyGenerator AES", "SunJCE", () -> {
            KeyGenerator generator = KeyGenerator.getInstance("AES");
            generator.init(256);
            require(generator.generateKey().getAlgorithm().equals("AES"), "AES");
            return generator.getProvider().getName();
        });
        by("Ed25519", "SunEC", () -> {
            // SunPKCS11 of JDK 17 has no Edwards curves.
            throwsOne(NoSuchAlgorithmException.class, () -> Signature.getInstance("Ed25519", token), "Ed25519 of SunPKCS11");
            return KeyPairGenerator.getInstance("Ed25519").getProvider().getName();
        });
    }

    private String agrees() throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        KeyPair one = generator.generateKeyPair();
        KeyPair two = generator.generateKeyPair();
        require(Arrays.equals(agree(one, two), agree(two, one)), "the two sides differ");
        return generator.getProvider().getName();
    }

    private static byte[] agree(KeyPair own, KeyPair other) throws Exception {
        KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
        agreement.init(own.getPrivate());
        agreement.doPhase(other.getPublic(), true);
        return agreement.generateSecret();
    }

    private void connections() throws Exception {
        for (String version : new String[] {"TLSv1.3", "TLSv1.2"}) {
            byToken(version + ", keys of both ends in the token", () -> {
                connects(version);
                return token.getName();
            });
        }
    }

    /** A server that wants a certificate and a client that has one; the keys of both are in the token. */
    private void connects(String version) throws Exception {
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, null);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        for (String alias : new String[] {"jrsa", "jec"}) {
            trusted.setCertificateEntry(alias, store.getCertificate(alias));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        InetAddress loopback = InetAddress.getByName("127.0.0.1");
        try (SSLServerSocket listening = (SSLServerSocket) context.getServerSocketFactory().createServerSocket(0, 5, loopback)) {
            listening.setEnabledProtocols(new String[] {version});
            listening.setNeedClientAuth(true);
            Thread server = new Thread(() -> echo(listening));
            server.start();
            try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(loopback, listening.getLocalPort())) {
                socket.startHandshake();
                require(socket.getSession().getProtocol().equals(version), version);
                require(socket.getSession().getLocalCertificates() != null, "the client has shown no certificate");
                socket.getOutputStream().write(MESSAGE);
                socket.getOutputStream().flush();
                require(Arrays.equals(socket.getInputStream().readNBytes(MESSAGE.length), MESSAGE), "the echo");
            }
            server.join();
        }
    }

    private static void echo(SSLServerSocket listening) {
        try (SSLSocket socket = (SSLSocket) listening.accept()) {
            socket.getOutputStream().write(socket.getInputStream().readNBytes(MESSAGE.length));
            socket.getOutputStream().flush();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }
}
