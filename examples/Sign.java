// SPDX-License-Identifier: Apache-2.0
// Finds a key by its label and signs with it; makes an AES key and seals with that. Java knows a key that has a
// certificate, by the label that both have; what it is called in a URI is "object".
//
//     metaslot key generate --label site
//     metaslot cert selfsign site --dns localhost --store
//     java Sign.java p11.cfg site pin-file          p11.cfg: docs/clients.md

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.Security;
import java.security.Signature;
import java.util.Arrays;
import java.util.HexFormat;
import javax.crypto.Cipher;
import javax.crypto.KeyGenerator;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;

class Sign {
    public static void main(String[] arguments) throws Exception {
        String configuration = arguments[0];
        String label = arguments[1];
        char[] pin = Files.readString(Path.of(arguments[2])).strip().toCharArray();

        Provider provider = Security.getProvider("SunPKCS11").configure(configuration);
        KeyStore token = KeyStore.getInstance("PKCS11", provider);
        token.load(null, pin);

        PrivateKey key = (PrivateKey) token.getKey(label, null);
        if (key == null) {
            throw new IllegalArgumentException("no key with a certificate is called " + label);
        }
        byte[] message = "message".getBytes();
        Signature signer = Signature.getInstance("SHA256withECDSA", provider);
        signer.initSign(key);
        signer.update(message);
        byte[] signature = signer.sign();

        // By Java's own provider, with the key of the certificate.
        Signature verifier = Signature.getInstance("SHA256withECDSA");
        verifier.initVerify(token.getCertificate(label));
        verifier.update(message);
        if (!verifier.verify(signature)) {
            throw new IllegalStateException("the signature is not valid");
        }
        System.out.println("signature: " + HexFormat.of().formatHex(signature));

        // A session object: it is gone when the program ends.
        KeyGenerator generator = KeyGenerator.getInstance("AES", provider);
        generator.init(256);
        SecretKey secret = generator.generateKey();
        byte[] nonce = new byte[12];
        java.security.SecureRandom.getInstance("PKCS11", provider).nextBytes(nonce);
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding", provider);
        cipher.init(Cipher.ENCRYPT_MODE, secret, new GCMParameterSpec(128, nonce));
        byte[] sealed = cipher.doFinal("secret".getBytes());
        cipher.init(Cipher.DECRYPT_MODE, secret, new GCMParameterSpec(128, nonce));
        if (!Arrays.equals(cipher.doFinal(sealed), "secret".getBytes())) {
            throw new IllegalStateException("not what was sealed");
        }
        System.out.println(sealed.length + " bytes sealed and opened");
    }
}
