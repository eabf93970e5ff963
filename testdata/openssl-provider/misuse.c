// SPDX-License-Identifier: Apache-2.0
// Programs' mistakes: what is refused by OpenSSL's own provider is refused for keys of a token, and nothing is signed by halves. Arguments: URIs of
// an RSA key and of one on P-256. The exit status is how often an answer was not the expected one.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/store.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

static int bad;
static unsigned char data[2048], room[2048];

static void is(const char *what, long expected, long answer) {
    if (expected != answer) {
        fprintf(stderr, "%s: %ld, not %ld\n", what, answer, expected);
        ERR_print_errors_fp(stderr);
        bad++;
    }
    ERR_clear_error();
}

static EVP_PKEY *load(const char *uri) {
    OSSL_STORE_CTX *store = OSSL_STORE_open(uri, NULL, NULL, NULL, NULL);
    OSSL_STORE_INFO *found = store == NULL ? NULL : OSSL_STORE_load(store);
    EVP_PKEY *key = found == NULL ? NULL : OSSL_STORE_INFO_get1_PKEY(found);
    OSSL_STORE_INFO_free(found);
    OSSL_STORE_close(store);
    return key;
}

// The public half in OpenSSL's own provider.
static EVP_PKEY *plain(EVP_PKEY *key) {
    unsigned char *der = NULL;
    int length = i2d_PUBKEY(key, &der);
    const unsigned char *at = der;
    EVP_PKEY *public = length > 0 ? d2i_PUBKEY(NULL, &at, length) : NULL;
    OPENSSL_free(der);
    return public;
}

// Signs what is a digest, or as long as the key.
static int signs(EVP_PKEY *key, int padding, const EVP_MD *hash, size_t length) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    size_t size = sizeof room;
    int good = EVP_PKEY_sign_init(context) == 1 && EVP_PKEY_CTX_set_rsa_padding(context, padding) == 1
        && (hash == NULL || EVP_PKEY_CTX_set_signature_md(context, hash) == 1)
        && EVP_PKEY_sign(context, room, &size, data, length) == 1;
    EVP_PKEY_CTX_free(context);
    return good;
}

// Hashes, then names another hash function.
static int changes(EVP_PKEY *key) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *of = NULL;
    int good = EVP_DigestSignInit_ex(context, &of, "SHA256", NULL, NULL, key, NULL) == 1
        && EVP_DigestSignUpdate(context, data, 9) == 1 && EVP_PKEY_CTX_set_signature_md(of, EVP_sha512()) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

// One part of the message, and the rest in one go.
static int in_parts(EVP_PKEY *key, EVP_PKEY *public) {
    EVP_MD_CTX *sign = EVP_MD_CTX_new(), *verify = EVP_MD_CTX_new();
    size_t size = sizeof room;
    int good = EVP_DigestSignInit_ex(sign, NULL, "SHA256", NULL, NULL, key, NULL) == 1
        && EVP_DigestSignUpdate(sign, data, 9) == 1 && EVP_DigestSign(sign, room, &size, data + 9, 11) == 1
        && EVP_DigestVerifyInit_ex(verify, NULL, "SHA256", NULL, NULL, public, NULL) == 1
        && EVP_DigestVerify(verify, room, size, data, 20) == 1;
    EVP_MD_CTX_free(sign);
    EVP_MD_CTX_free(verify);
    return good;
}

// Decrypts ten bytes into so much room.
static int decrypts(EVP_PKEY *key, EVP_PKEY *public, int padding, size_t size) {
    unsigned char sealed[1024];
    size_t length = sizeof sealed;
    EVP_PKEY_CTX *seal = EVP_PKEY_CTX_new(public, NULL), *open = EVP_PKEY_CTX_new(key, NULL);
    int good = EVP_PKEY_encrypt_init(seal) == 1 && EVP_PKEY_CTX_set_rsa_padding(seal, padding) == 1
        && EVP_PKEY_encrypt(seal, sealed, &length, data, 10) == 1 && EVP_PKEY_decrypt_init(open) == 1
        && EVP_PKEY_CTX_set_rsa_padding(open, padding) == 1
        && EVP_PKEY_decrypt(open, room, &size, sealed, length) == 1 && size == 10;
    EVP_PKEY_CTX_free(seal);
    EVP_PKEY_CTX_free(open);
    return good;
}

// A premaster secret of TLS 1.2 with a wrong padding is one that was made up, and no trace of it is left: 1 where that is so.
static int premaster(EVP_PKEY *key, EVP_PKEY *public) {
    unsigned char sealed[1024];
    size_t length = sizeof sealed, size = 48;
    unsigned version = 0x303;
    OSSL_PARAM parts[] = {OSSL_PARAM_construct_uint(OSSL_ASYM_CIPHER_PARAM_TLS_CLIENT_VERSION, &version), OSSL_PARAM_END};
    EVP_PKEY_CTX *seal = EVP_PKEY_CTX_new(public, NULL), *open = EVP_PKEY_CTX_new(key, NULL);
    int good = EVP_PKEY_encrypt_init(seal) == 1 && EVP_PKEY_CTX_set_rsa_padding(seal, RSA_NO_PADDING) == 1
        && EVP_PKEY_encrypt(seal, sealed, &length, data, EVP_PKEY_get_size(key)) == 1 && EVP_PKEY_decrypt_init(open) == 1
        && EVP_PKEY_CTX_set_rsa_padding(open, RSA_PKCS1_WITH_TLS_PADDING) == 1;
    ERR_clear_error();
    good = good && EVP_PKEY_decrypt(open, room, &size, sealed, length) == 0 && EVP_PKEY_CTX_set_params(open, parts) == 1;
    ERR_clear_error();
    size = 48;
    good = good && EVP_PKEY_decrypt(open, room, &size, sealed, length) == 1 && size == 48 && ERR_peek_error() == 0;
    EVP_PKEY_CTX_free(seal);
    EVP_PKEY_CTX_free(open);
    return good;
}

// By PSS with this salt; checked by the token, which is not told its length.
static int salts(EVP_PKEY *key, int salt) {
    EVP_MD_CTX *sign = EVP_MD_CTX_new(), *verify = EVP_MD_CTX_new();
    EVP_PKEY_CTX *of = NULL;
    size_t size = sizeof room;
    int good = EVP_DigestSignInit_ex(sign, &of, "SHA256", NULL, NULL, key, NULL) == 1
        && EVP_PKEY_CTX_set_rsa_padding(of, RSA_PKCS1_PSS_PADDING) == 1
        && EVP_PKEY_CTX_set_rsa_pss_saltlen(of, salt) == 1 && EVP_DigestSign(sign, room, &size, data, 20) == 1
        && EVP_DigestVerifyInit_ex(verify, &of, "SHA256", NULL, NULL, key, NULL) == 1
        && EVP_PKEY_CTX_set_rsa_padding(of, RSA_PKCS1_PSS_PADDING) == 1
        && EVP_DigestVerify(verify, room, size, data, 20) == 1;
    EVP_MD_CTX_free(sign);
    EVP_MD_CTX_free(verify);
    return good;
}

// What is said of PSS, or of a digest, to a signature that has neither: how much of it is taken.
static int says_too_much(EVP_PKEY *key) {
    EVP_PKEY_CTX *sign = EVP_PKEY_CTX_new(key, NULL);
    OSSL_PARAM mask[] = {OSSL_PARAM_construct_utf8_string("mgf1-digest", "SHA256", 0), OSSL_PARAM_END};
    int taken = EVP_PKEY_sign_init(sign) != 1;
    taken += EVP_PKEY_CTX_set_rsa_pss_saltlen(sign, 20) == 1;
    taken += EVP_PKEY_CTX_set_params(sign, mask) == 1;
    taken += EVP_PKEY_CTX_set_rsa_padding(sign, RSA_NO_PADDING) != 1;
    taken += EVP_PKEY_CTX_set_signature_md(sign, EVP_sha256()) == 1;
    EVP_PKEY_CTX_free(sign);
    return taken;
}

// Opens a number with all its bytes, and without the zero that it begins with.
static int opens_shorter(EVP_PKEY *key, size_t size) {
    unsigned char opened[2][1024];
    int good = 1;
    for (size_t without = 0; without < 2; without++) {
        size_t length = sizeof *opened;
        EVP_PKEY_CTX *open = EVP_PKEY_CTX_new(key, NULL);
        good = good && EVP_PKEY_decrypt_init(open) == 1 && EVP_PKEY_CTX_set_rsa_padding(open, RSA_NO_PADDING) == 1
            && EVP_PKEY_decrypt(open, opened[without], &length, data + without, size - without) == 1 && length == size;
        EVP_PKEY_CTX_free(open);
    }
    return good && memcmp(opened[0], opened[1], size) == 0;
}

// Seals so much without padding, by a provider.
static int seals(EVP_PKEY *public, const char *provider, size_t size) {
    size_t length = sizeof room;
    EVP_PKEY_CTX *seal = EVP_PKEY_CTX_new_from_pkey(NULL, public, provider);
    int good = EVP_PKEY_encrypt_init(seal) == 1 && EVP_PKEY_CTX_set_rsa_padding(seal, RSA_NO_PADDING) == 1
        && EVP_PKEY_encrypt(seal, room, &length, data, size) == 1;
    EVP_PKEY_CTX_free(seal);
    return good;
}

// A public key of ours from these parts: 0 where it is not taken, 1 where it fails its check, 2 where it passes.
static int imports(const char *type, OSSL_PARAM *parts) {
    const char *ours = "provider=metaslot";
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *import = EVP_PKEY_CTX_new_from_name(NULL, type, ours), *check = NULL;
    int answer = EVP_PKEY_fromdata_init(import) == 1 && EVP_PKEY_fromdata(import, &key, EVP_PKEY_PUBLIC_KEY, parts) == 1;
    if (answer) {
        check = EVP_PKEY_CTX_new_from_pkey(NULL, key, ours);
        answer += EVP_PKEY_public_check(check) == 1;
    }
    EVP_PKEY_CTX_free(import);
    EVP_PKEY_CTX_free(check);
    EVP_PKEY_free(key);
    return answer;
}

static int point(const char *curve, unsigned char *bytes, size_t length) {
    OSSL_PARAM parts[] = {OSSL_PARAM_construct_utf8_string("group", (char *)curve, 0),
                          OSSL_PARAM_construct_octet_string("pub", bytes, length), OSSL_PARAM_END};
    return imports("EC", parts);
}

static int rsa(unsigned char first, unsigned char exponent) {
    unsigned char modulus[256];
    memset(modulus, 0xd5, sizeof modulus);
    modulus[0] = modulus[255] = first;
    OSSL_PARAM parts[] = {OSSL_PARAM_construct_BN("n", modulus, sizeof modulus), OSSL_PARAM_construct_BN("e", &exponent, 1),
                          OSSL_PARAM_END};
    return imports("RSA", parts);
}

// A key for SHA-512 only goes to no provider that would forget that.
static int forgets(void) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *make = EVP_PKEY_CTX_new_from_name(NULL, "RSA-PSS", "provider=default");
    EVP_PKEY_keygen_init(make);
    EVP_PKEY_CTX_set_rsa_pss_keygen_md(make, EVP_sha512());
    EVP_PKEY_keygen(make, &key);
    EVP_PKEY_CTX *verify = EVP_PKEY_CTX_new_from_pkey(NULL, key, "provider=metaslot");
    int answer = verify != NULL && EVP_PKEY_verify_init(verify) == 1 && EVP_PKEY_CTX_set_signature_md(verify, EVP_sha1()) == 1;
    EVP_PKEY_CTX_free(verify);
    EVP_PKEY_CTX_free(make);
    EVP_PKEY_free(key);
    return answer;
}

int main(int argc, char **argv) {
    EVP_PKEY *key = argc == 3 ? load(argv[1]) : NULL, *ec = argc == 3 ? load(argv[2]) : NULL;
    if (key == NULL || ec == NULL) {
        ERR_print_errors_fp(stderr);
        return 98;
    }
    EVP_PKEY *public = plain(key), *ec_public = plain(ec);
    size_t size = EVP_PKEY_get_size(key);
    memset(data + 1, 7, sizeof data - 1);
    is("without padding, as long as the key", 1, signs(key, RSA_NO_PADDING, NULL, size));
    is("without padding, shorter", 0, signs(key, RSA_NO_PADDING, NULL, 32));
    is("without padding, a digest", 0, signs(key, RSA_NO_PADDING, EVP_sha256(), 32));
    is("PKCS #1, a digest", 1, signs(key, RSA_PKCS1_PADDING, EVP_sha256(), 32));
    is("PKCS #1, no digest of that length", 0, signs(key, RSA_PKCS1_PADDING, EVP_sha256(), 31));
    is("PSS, SHA-1 where nothing is said", 1, signs(key, RSA_PKCS1_PSS_PADDING, NULL, 20));
    is("another hash function, RSA", 0, changes(key));
    is("another hash function, EC", 0, changes(ec));
    is("in parts, RSA", 1, in_parts(key, public));
    is("in parts, EC", 1, in_parts(ec, ec_public));
    for (int padding = RSA_PKCS1_PADDING; padding <= RSA_PKCS1_OAEP_PADDING; padding += 3) {
        is("decrypts", 1, decrypts(key, public, padding, size));
        is("decrypts into too little", 0, decrypts(key, public, padding, size - 1));
        is("decrypts into what would do", 0, decrypts(key, public, padding, 10));
    }
    is("a premaster secret", 1, premaster(key, public));
    is("a salt, a mask or a digest where there is none", 0, says_too_much(key));
    is("without the zero that it begins with", 1, opens_shorter(key, EVP_PKEY_get_size(key)));
    is("without padding, as long as the key, sealed", 1, seals(public, "provider=metaslot", EVP_PKEY_get_size(key)));
    is("without padding, shorter, sealed", 0, seals(public, "provider=metaslot", EVP_PKEY_get_size(key) - 1));
    for (int salt = 0; salt < 200; salt += 37)
        is("a salt of any length", 1, salts(key, salt));
    unsigned char bytes[65], zero[1] = {0};
    is("the point", 1, EVP_PKEY_get_octet_string_param(ec_public, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, bytes, sizeof bytes, &size));
    is("a point", 2, point("P-256", bytes, 65));
    is("a point's beginning", 0, point("P-256", bytes, 64));
    is("a point of another curve", 0, point("P-384", bytes, 65));
    is("no point", 0, point("P-256", zero, 1));
    is("an odd modulus", 2, rsa(0xd5, 3));
    is("an even modulus", 1, rsa(0xd4, 3));
    is("an even exponent", 1, rsa(0xd5, 2));
    is("an exponent of one", 1, rsa(0xd5, 1));
    is("a restricted key", 0, forgets());
    EVP_PKEY_set_utf8_string_param(ec_public, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, "compressed");
    EVP_PKEY *small = plain(ec_public);
    is("a compressed point, by OpenSSL", 1, EVP_PKEY_eq(ec, small));
    is("a compressed point, by us", 1, EVP_PKEY_eq(small, ec));
    return bad;
}
