// SPDX-License-Identifier: Apache-2.0

import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.KeyGenerator;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/** What a Java program does with a token: {@code TokenClient CONFIGURATION PIN PART}. */
public final class TokenClient {
    private static final byte[] MESSAGE = "what is signed, sealed and digested ".repeat(40)
            .getBytes(StandardCharsets.UTF_8);

    private final Provider provider;
    private final KeyStore store;

    private TokenClient(String configuration, String pin) throws Exception {
        provider = Security.getProvider("SunPKCS11").configure(configuration);
        Security.addProvider(provider);
        store = KeyStore.getInstance("PKCS11", provider);
        store.load(null, pin.toCharArray());
    }

    public static void main(String[] arguments) throws Exception {
        TokenClient client = new TokenClient(arguments[0], arguments[1]);
        switch (arguments[2]) {
            case "signature" -> client.signature();
            case "cipher" -> client.cipher();
            case "keystore" -> client.keyStore();
            case "digest" -> client.digest();
            case "agreement" -> client.agreement();
            case "tls" -> client.tls();
            default -> throw new IllegalArgumentException(arguments[2]);
        }
        System.out.println("done");
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private KeyPair rsa() throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA", provider);
        generator.initialize(2048);
        return generator.generateKeyPair();
    }

    private KeyPair ec(String curve) throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", provider);
        generator.initialize(new ECGenParameterSpec(curve));
        return generator.generateKeyPair();
    }

    private void signature() throws Exception {
        KeyPair rsa = rsa();
        for (String name : new String[] {"SHA1withRSA", "SHA256withRSA", "SHA512withRSA"}) {
            signAndVerify(name, rsa);
        }
        for (String curve : new String[] {"secp256r1", "secp384r1", "secp521r1"}) {
            KeyPair pair = ec(curve);
            signAndVerify("SHA256withECDSA", pair);
            signAndVerify("SHA512withECDSA", pair);
        }
    }

    /** Signs in the token; verifies there and with the runtime's own provider. */
    private void signAndVerify(String name, KeyPair pair) throws Exception {
        Signature signer = Signature.getInstance(name, provider);
        signer.initSign(pair.getPrivate());
        signer.update(MESSAGE, 0, 100);
        signer.update(MESSAGE, 100, MESSAGE.length - 100);
        byte[] signature = signer.sign();
        require(verifies(Signature.getInstance(name, provider), pair.getPublic(), signature), name + " in the token");
        PublicKey plain = KeyFactory.getInstance(pair.getPublic().getAlgorithm())
                .generatePublic(new X509EncodedKeySpec(pair.getPublic().getEncoded()));
        String software = name.endsWith("RSA") ? "SunRsaSign" : "SunEC";
        require(verifies(Signature.getInstance(name, software), plain, signature), name + " outside");
        signature[signature.length - 1] ^= 1;
        require(!verifies(Signature.getInstance(name, provider), pair.getPublic(), signature), name + " changed");
    }

    private static boolean verifies(Signature verifier, PublicKey key, byte[] signature) throws Exception {
        verifier.initVerify(key);
        verifier.update(MESSAGE);
        try {
            return verifier.verify(signature);
        } catch (java.security.SignatureException refused) {
            return false;
        }
    }

    private void cipher() throws Exception {
        KeyGenerator generator = KeyGenerator.getInstance("AES", provider);
        generator.init(256);
        SecretKey key = generator.generateKey();
        IvParameterSpec iv = new IvParameterSpec(new byte[16]);
        sealAndOpen("AES/CBC/PKCS5Padding", key, iv, MESSAGE);
        sealAndOpen("AES/CBC/NoPadding", key, iv, Arrays.copyOf(MESSAGE, 1024));
        sealAndOpen("AES/CTR/NoPadding", key, iv, MESSAGE);
        sealAndOpen("AES/ECB/NoPadding", key, null, Arrays.copyOf(MESSAGE, 1024));
        sealAndOpen("AES/GCM/NoPadding", key, new GCMParameterSpec(128, new byte[12]), MESSAGE);
        KeyPair pair = rsa();
        Cipher rsa = Cipher.getInstance("RSA/ECB/PKCS1Padding", provider);
        rsa.init(Cipher.ENCRYPT_MODE, pair.getPublic());
        byte[] sealed = rsa.doFinal("secret".getBytes(StandardCharsets.UTF_8));
        rsa.init(Cipher.DECRYPT_MODE, pair.getPrivate());
        require(new String(rsa.doFinal(sealed), StandardCharsets.UTF_8).equals("secret"), "RSA");
        known("AES/CBC/PKCS5Padding", iv);
        known("AES/GCM/NoPadding", new GCMParameterSpec(128, new byte[12]));
    }

    private void sealAndOpen(String name, SecretKey key, java.security.spec.AlgorithmParameterSpec parameters,
            byte[] plain) throws Exception {
        Cipher cipher = Cipher.getInstance(name, provider);
        cipher.init(Cipher.ENCRYPT_MODE, key, parameters);
        byte[] sealed = cipher.doFinal(plain);
        require(!Arrays.equals(Arrays.copyOf(sealed, plain.length), plain), name + " does nothing");
        cipher.init(Cipher.DECRYPT_MODE, key, parameters);
        require(Arrays.equals(cipher.doFinal(sealed), plain), name);
    }

    /** The same key in software gives the same bytes. */
    private void known(String name, java.security.spec.AlgorithmParameterSpec parameters) throws Exception {
        byte[] raw = new byte[32];
        new SecureRandom().nextBytes(raw);
        SecretKey key = new SecretKeySpec(raw, "AES");
        Cipher ours = Cipher.getInstance(name, provider);
        ours.init(Cipher.ENCRYPT_MODE, key, parameters);
        Cipher theirs = Cipher.getInstance(name, "SunJCE");
        theirs.init(Cipher.ENCRYPT_MODE, key, parameters);
        require(Arrays.equals(ours.doFinal(MESSAGE), theirs.doFinal(MESSAGE)), name + " against SunJCE");
    }

    private void keyStore() throws Exception {
        for (String alias : new String[] {"jrsa", "jec"}) {
            PrivateKey key = (PrivateKey) store.getKey(alias, null);
            Certificate certificate = store.getCertificate(alias);
            require(key != null && certificate != null, alias);
            String name = alias.equals("jrsa") ? "SHA256withRSA" : "SHA256withECDSA";
            // No provider is named: the key decides, which is how most programs are written.
            Signature signer = Signature.getInstance(name);
            signer.initSign(key);
            signer.update(MESSAGE);
            byte[] signature = signer.sign();
            // A key whose value the token gives out may be used by any provider.
            require(key.getEncoded() != null || signer.getProvider() == provider,
                    alias + " was signed by " + signer.getProvider());
            require(verifies(Signature.getInstance(name), certificate.getPublicKey(), signature), alias);
        }
        SecretKey secret = new SecretKeySpec(new byte[32], "AES");
        store.setEntry("imported", new KeyStore.SecretKeyEntry(secret), null);
        require(store.isKeyEntry("imported"), "the imported key");
        store.deleteEntry("imported");
        require(!store.containsAlias("imported"), "the deleted key");
    }

    private void digest() throws Exception {
        for (String name : new String[] {"SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"}) {
            MessageDigest ours = MessageDigest.getInstance(name, provider);
            ours.update(MESSAGE, 0, 500);
            MessageDigest copy = (MessageDigest) ours.clone();
            copy.update(MESSAGE, 500, MESSAGE.length - 500);
            require(Arrays.equals(copy.digest(), MessageDigest.getInstance(name, "SUN").digest(MESSAGE)),
                    name + " cloned");
            ours.update(MESSAGE, 500, MESSAGE.length - 500);
            require(Arrays.equals(ours.digest(), MessageDigest.getInstance(name, "SUN").digest(MESSAGE)), name);
        }
        for (String name : new String[] {"HmacSHA1", "HmacSHA256", "HmacSHA384", "HmacSHA512"}) {
            SecretKey key = new SecretKeySpec(new byte[32], name);
            Mac ours = Mac.getInstance(name, provider);
            ours.init(key);
            Mac theirs = Mac.getInstance(name, "SunJCE");
            theirs.init(key);
            require(Arrays.equals(ours.doFinal(MESSAGE), theirs.doFinal(MESSAGE)), name);
        }
        byte[] random = new byte[64];
        SecureRandom.getInstance("PKCS11", provider).nextBytes(random);
        require(!Arrays.equals(random, new byte[64]), "random");
    }

    private void agreement() throws Exception {
        KeyPair one = ec("secp256r1");
        KeyPair two = ec("secp256r1");
        byte[] first = agree(one, two);
        byte[] second = agree(two, one);
        require(first.length == 32 && Arrays.equals(first, second), "the two sides differ");
    }

    private byte[] agree(KeyPair own, KeyPair other) throws Exception {
        KeyAgreement agreement = KeyAgreement.getInstance("ECDH", provider);
        agreement.init(own.getPrivate());
        agreement.doPhase(other.getPublic(), true);
        return agreement.generateSecret();
    }

    private void tls() throws Exception {
        for (String version : new String[] {"TLSv1.3", "TLSv1.2"}) {
            for (int round = 0; round < 2; round++) {
                serveOnce(version);
            }
        }
    }

    /** One connection between this process's own server, with its keys in the token, and a plain client. */
    private void serveOnce(String version) throws Exception {
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, null);
        SSLContext serving = SSLContext.getInstance("TLS");
        serving.init(keys.getKeyManagers(), null, null);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        for (String alias : new String[] {"jrsa", "jec"}) {
            trusted.setCertificateEntry(alias, store.getCertificate(alias));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        SSLContext asking = SSLContext.getInstance("TLS");
        asking.init(null, trust.getTrustManagers(), null);
        InetAddress loopback = InetAddress.getByName("127.0.0.1");
        try (SSLServerSocket listening =
                (SSLServerSocket) serving.getServerSocketFactory().createServerSocket(0, 5, loopback)) {
            listening.setEnabledProtocols(new String[] {version});
            Thread server = new Thread(() -> echo(listening));
            server.start();
            try (SSLSocket socket = (SSLSocket) asking.getSocketFactory().createSocket(loopback,
                    listening.getLocalPort())) {
                socket.startHandshake();
                require(socket.getSession().getProtocol().equals(version), version);
                OutputStream out = socket.getOutputStream();
                out.write(MESSAGE);
                out.flush();
                require(Arrays.equals(socket.getInputStream().readNBytes(MESSAGE.length), MESSAGE), "the echo");
            }
            server.join();
        }
    }

    private static void echo(SSLServerSocket listening) {
        try (SSLSocket socket = (SSLSocket) listening.accept()) {
            InputStream in = socket.getInputStream();
            socket.getOutputStream().write(in.readNBytes(MESSAGE.length));
            socket.getOutputStream().flush();
        } catch (java.io.IOException failed) {
            throw new java.io.UncheckedIOException(failed);
        }
    }
}
