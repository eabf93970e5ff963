// SPDX-License-Identifier: Apache-2.0
// A program of OpenSSL whose keys are its own and are used by the provider's module (mode all): made of numbers, made anew, written, copied, compared, used for
// key agreement, kept beyond the end of what loaded them. The arguments are files of keys. Its exit status is how often something failed.
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int bad;

static void is(const char *what, long expected, long answer) {
    if (expected != answer) {
        fprintf(stderr, "%s: %ld, not %ld\n", what, answer, expected);
        ERR_print_errors_fp(stderr);
        bad++;
    }
    ERR_clear_error();
}

static EVP_PKEY *load(OSSL_LIB_CTX *library, const char *file) {
    BIO *from = BIO_new_file(file, "r");
    EVP_PKEY *key = PEM_read_bio_PrivateKey_ex(from, NULL, NULL, NULL, library, NULL);
    BIO_free(from);
    return key;
}

static int ours(EVP_PKEY *key) {
    const OSSL_PROVIDER *provider = EVP_PKEY_get0_provider(key);
    return provider != NULL && strcmp(OSSL_PROVIDER_get0_name(provider), "metaslot") == 0;
}

static const char *hash_of(EVP_PKEY *key) {
    return EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "EC") ? "SHA256" : NULL;
}

// Signs with one key, and checks with the other.
static int pairs(OSSL_LIB_CTX *library, EVP_PKEY *key, EVP_PKEY *other) {
    unsigned char signature[8192], message[50] = {7};
    size_t length = sizeof signature;
    EVP_MD_CTX *sign = EVP_MD_CTX_new(), *verify = EVP_MD_CTX_new();
    int good = EVP_DigestSignInit_ex(sign, NULL, hash_of(key), library, NULL, key, NULL) == 1
        && EVP_DigestSign(sign, signature, &length, message, sizeof message) == 1
        && EVP_DigestVerifyInit_ex(verify, NULL, hash_of(other), library, NULL, other, NULL) == 1
        && EVP_DigestVerify(verify, signature, length, message, sizeof message) == 1;
    EVP_MD_CTX_free(sign);
    EVP_MD_CTX_free(verify);
    return good;
}

static EVP_PKEY *made_of(const char *type, const char *query, int selection, OSSL_PARAM *parts) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *import = EVP_PKEY_CTX_new_from_name(NULL, type, query);
    if (EVP_PKEY_fromdata_init(import) == 1)
        EVP_PKEY_fromdata(import, &key, selection, parts);
    EVP_PKEY_CTX_free(import);
    return key;
}

// What is the same of every key, whoever has it: it is written, read, copied, compared and given away with all its parts.
static void survives(const char *what, EVP_PKEY *key) {
    unsigned char *der = NULL, *point = NULL;
    const unsigned char *at;
    OSSL_PARAM *parts = NULL;
    EVP_PKEY *copy = EVP_PKEY_dup(key);
    is(what, 1, copy != NULL && EVP_PKEY_eq(key, copy));
    // Its public half is set anew, except of RSA, which has none that is encoded; the private one stays.
    size_t size = EVP_PKEY_get1_encoded_public_key(copy, &point);
    is(what, 1, size == 0 || EVP_PKEY_set1_encoded_public_key(copy, point, size));
    OPENSSL_free(point);
    int length = i2d_PrivateKey(key, &der);
    at = der;
    EVP_PKEY *read = length > 0 ? d2i_AutoPrivateKey(NULL, &at, length) : NULL;
    is(what, 1, read != NULL && EVP_PKEY_eq(key, read) && EVP_PKEY_eq(read, key));
    is(what, 1, EVP_PKEY_todata(key, EVP_PKEY_KEYPAIR, &parts));
    EVP_PKEY *plain = made_of(EVP_PKEY_get0_type_name(key), "provider=default", EVP_PKEY_KEYPAIR, parts);
    is(what, 1, plain != NULL && EVP_PKEY_eq(key, plain));
    EVP_PKEY *again = made_of(EVP_PKEY_get0_type_name(key), NULL, EVP_PKEY_KEYPAIR, parts);
    is(what, 1, again != NULL && ours(again) && EVP_PKEY_eq(again, key));
    BIO *text = BIO_new(BIO_s_mem());
    is(what, 1, PEM_write_bio_PrivateKey(text, key, EVP_aes_256_cbc(), (unsigned char *)"abc", 3, NULL, NULL));
    EVP_PKEY *opened = PEM_read_bio_PrivateKey(text, NULL, NULL, "abc");
    is(what, 1, opened != NULL && EVP_PKEY_eq(opened, key));
    is(what, 1, PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL));
    EVP_PKEY *bare = PEM_read_bio_PrivateKey(text, NULL, NULL, NULL);
    is(what, 1, bare != NULL && EVP_PKEY_eq(bare, key));
    if (!EVP_PKEY_is_a(key, "X25519")) {
        EVP_PKEY *each[] = {copy, read, plain, again, opened, bare};
        for (int i = 0; i < 6; i++) {
            is(what, 1, pairs(NULL, each[i], key));
            is(what, 1, pairs(NULL, key, each[i]));
        }
    }
    BIO_free(text);
    OSSL_PARAM_free(parts);
    OPENSSL_free(der);
    EVP_PKEY_free(copy);
    EVP_PKEY_free(read);
    EVP_PKEY_free(plain);
    EVP_PKEY_free(again);
    EVP_PKEY_free(opened);
    EVP_PKEY_free(bare);
}

// A key of RSA by its modulus and its exponents alone, and by its primes as well.
static void without_primes(EVP_PKEY *rsa) {
    BIGNUM *n = NULL, *e = NULL, *d = NULL, *p = NULL, *q = NULL, *prime = NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY_get_bn_param(rsa, "n", &n);
    EVP_PKEY_get_bn_param(rsa, "e", &e);
    EVP_PKEY_get_bn_param(rsa, "d", &d);
    OSSL_PARAM_BLD_push_BN(build, "n", n);
    OSSL_PARAM_BLD_push_BN(build, "e", e);
    OSSL_PARAM_BLD_push_BN(build, "d", d);
    OSSL_PARAM *parts = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY *key = made_of("RSA", NULL, EVP_PKEY_KEYPAIR, parts);
    BIGNUM *same = NULL;
    is("without primes", 1, key != NULL && ours(key) && pairs(NULL, key, rsa));
    is("its exponent", 1, EVP_PKEY_get_bn_param(key, "d", &same) && BN_cmp(d, same) == 0);
    OSSL_PARAM_BLD_push_BN(build, "n", n);
    OSSL_PARAM_BLD_push_BN(build, "e", e);
    OSSL_PARAM_BLD_push_BN(build, "d", d);
    EVP_PKEY_get_bn_param(rsa, "rsa-factor1", &p);
    EVP_PKEY_get_bn_param(rsa, "rsa-factor2", &q);
    OSSL_PARAM_BLD_push_BN(build, "rsa-factor1", p);
    OSSL_PARAM_BLD_push_BN(build, "rsa-factor2", q);
    OSSL_PARAM *primes = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY *with = made_of("RSA", NULL, EVP_PKEY_KEYPAIR, primes);
    is("with primes", 1, with != NULL && ours(with) && pairs(NULL, with, rsa));
    is("its prime", 1, EVP_PKEY_get_bn_param(with, "rsa-factor2", &prime) && BN_cmp(q, prime) == 0);
    // An even modulus is none.
    BN_sub_word(n, 1);
    OSSL_PARAM_BLD_push_BN(build, "n", n);
    OSSL_PARAM_BLD_push_BN(build, "e", e);
    OSSL_PARAM_BLD_push_BN(build, "d", d);
    OSSL_PARAM *wrong = OSSL_PARAM_BLD_to_param(build);
    is("no modulus", 1, made_of("RSA", NULL, EVP_PKEY_KEYPAIR, wrong) == NULL);
    OSSL_PARAM_free(parts);
    OSSL_PARAM_free(wrong);
    OSSL_PARAM_free(primes);
    OSSL_PARAM_BLD_free(build);
    BN_free(n);
    BN_free(e);
    BN_free(d);
    BN_free(p);
    BN_free(q);
    BN_free(prime);
    EVP_PKEY_free(with);
    BN_free(same);
    EVP_PKEY_free(key);
}

// Keys that are numbers, of which the program says nothing else: the public half is found out.
static void raw(const char *type, size_t length) {
    unsigned char number[57], public[57], expected[57];
    size_t size = sizeof public, same = sizeof expected;
    memset(number, 9, sizeof number);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key_ex(NULL, type, NULL, number, length);
    EVP_PKEY *plain = EVP_PKEY_new_raw_private_key_ex(NULL, type, "provider=default", number, length);
    is(type, 1, key != NULL && EVP_PKEY_get_raw_public_key(key, public, &size));
    is(type, 1, EVP_PKEY_get_raw_public_key(plain, expected, &same));
    is(type, 0, size != same || memcmp(public, expected, size));
    size = sizeof public;
    is(type, 1, EVP_PKEY_get_raw_private_key(key, public, &size) && size == length && memcmp(public, number, size) == 0);
    survives(type, key);
    EVP_PKEY_free(key);
    EVP_PKEY_free(plain);
}

static int checks(EVP_PKEY *key) {
    EVP_PKEY_CTX *check = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    int good = EVP_PKEY_check(check) == 1 && EVP_PKEY_pairwise_check(check) == 1;
    EVP_PKEY_CTX_free(check);
    return good;
}

// A point is the program's in each form, and one that is on no curve is refused, with a private half as well.
static void points(EVP_PKEY *ec) {
    unsigned char point[65], broken[65];
    BIGNUM *number = NULL, *x = NULL, *same = NULL;
    EVP_PKEY_get_bn_param(ec, "priv", &number);
    EVP_PKEY_get_bn_param(ec, "qx", &x);
    EVP_PKEY_get_octet_string_param(ec, "pub", point, sizeof point, NULL);
    for (int form = 0; form < 4; form++) {
        OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
        memcpy(broken, point, sizeof point);
        broken[0] = form == 1 ? 6 | (point[64] & 1) : form > 1 ? 4 : 2 | (point[64] & 1);
        broken[9] ^= form > 1;
        OSSL_PARAM_BLD_push_utf8_string(build, "group", "P-256", 0);
        OSSL_PARAM_BLD_push_octet_string(build, "pub", broken, form == 0 ? 33 : 65);
        if (form != 3)
            OSSL_PARAM_BLD_push_BN(build, "priv", number);
        OSSL_PARAM *parts = OSSL_PARAM_BLD_to_param(build);
        EVP_PKEY *key = made_of("EC", NULL, EVP_PKEY_KEYPAIR, parts);
        is("form of a point", form < 2, key != NULL);
        is("its field", form < 2 ? NID_X9_62_prime_field : 0, key == NULL ? 0 : EVP_PKEY_get_field_type(key));
        if (form < 2) {
            is("whose", 1, ours(key) && checks(key) && EVP_PKEY_eq(key, ec));
            is("it is set", 1, EVP_PKEY_set1_encoded_public_key(key, broken, form == 0 ? 33 : 65) && checks(key));
            is("its x", 1, EVP_PKEY_get_bn_param(key, "qx", &same) && BN_cmp(x, same) == 0);
        }
        EVP_PKEY_free(key);
        // Of parameters there is the curve only.
        key = made_of("EC", NULL, EVP_PKEY_KEY_PARAMETERS, parts);
        is("a curve", 1, key != NULL && ours(key) && !EVP_PKEY_get_octet_string_param(key, "pub", broken, sizeof broken, NULL));
        EVP_PKEY_free(key);
        OSSL_PARAM_free(parts);
        OSSL_PARAM_BLD_free(build);
        BN_free(same);
        same = NULL;
    }
    BN_free(number);
    BN_free(x);
}

// The hybrid form of a point on a binary curve.
static void binary_points(void) {
    unsigned char point[100];
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, "provider=default", "EC", "sect233k1");
    BIGNUM *number = NULL;
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_sect233k1);
    EC_POINT *at = EC_POINT_new(group);
    size_t length = 0;
    EVP_PKEY_get_bn_param(key, "priv", &number);
    EVP_PKEY_get_octet_string_param(key, "pub", point, sizeof point, &length);
    is("a point", 1, EC_POINT_oct2point(group, at, point, length, NULL));
    length = EC_POINT_point2oct(group, at, POINT_CONVERSION_HYBRID, point, sizeof point, NULL);
    for (int wrong = 0; wrong < 3; wrong++) {
        point[wrong == 1 ? 0 : length - 1] ^= wrong > 0;
        for (int private = 0; private < 2; private++) {
            OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
            OSSL_PARAM_BLD_push_utf8_string(build, "group", "sect233k1", 0);
            OSSL_PARAM_BLD_push_octet_string(build, "pub", point, length);
            if (private)
                OSSL_PARAM_BLD_push_BN(build, "priv", number);
            OSSL_PARAM *parts = OSSL_PARAM_BLD_to_param(build);
            EVP_PKEY *other = made_of("EC", "provider=metaslot", private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, parts);
            is("a hybrid point", !wrong, other != NULL && EVP_PKEY_eq(key, other));
            EVP_PKEY_free(other);
            OSSL_PARAM_free(parts);
            OSSL_PARAM_BLD_free(build);
        }
    }
    BN_free(number);
    EC_POINT_free(at);
    EC_GROUP_free(group);
    EVP_PKEY_free(key);
}

// The halves of two keys are none of one pair.
static void mixes(const char *type, const char *group) {
    EVP_PKEY *key = group == NULL ? EVP_PKEY_Q_keygen(NULL, NULL, type) : EVP_PKEY_Q_keygen(NULL, NULL, type, group);
    EVP_PKEY *other = group == NULL ? EVP_PKEY_Q_keygen(NULL, NULL, type) : EVP_PKEY_Q_keygen(NULL, NULL, type, group);
    OSSL_PARAM *parts = NULL, *others = NULL;
    is(type, 1, EVP_PKEY_todata(key, EVP_PKEY_KEYPAIR, &parts) && EVP_PKEY_todata(other, EVP_PKEY_KEYPAIR, &others));
    OSSL_PARAM *at = OSSL_PARAM_locate(parts, OSSL_PKEY_PARAM_PUB_KEY), *from = OSSL_PARAM_locate(others, OSSL_PKEY_PARAM_PUB_KEY);
    memcpy(at->data, from->data, at->data_size);
    EVP_PKEY *mixed = made_of(type, NULL, EVP_PKEY_KEYPAIR, parts);
    is(type, 1, checks(key) && checks(other));
    is("halves of two keys", 0, mixed != NULL && checks(mixed));
    EVP_PKEY_CTX *check = EVP_PKEY_CTX_new_from_pkey(NULL, mixed, NULL);
    is("each of them", 1, EVP_PKEY_private_check(check) == 1 && EVP_PKEY_public_check(check) == 1);
    EVP_PKEY_CTX_free(check);
    // What would be written otherwise than asked for is refused.
    is("a form", 0, EVP_PKEY_set_utf8_string_param(key, "point-format", "compressed"));
    is("the usual one", 1, EVP_PKEY_set_utf8_string_param(key, "point-format", "uncompressed"));
    is("an encoding", 0, EVP_PKEY_set_utf8_string_param(key, "encoding", "explicit"));
    OSSL_PARAM_free(parts);
    OSSL_PARAM_free(others);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
    EVP_PKEY_free(mixed);
}

static size_t secret_of(EVP_PKEY *key, EVP_PKEY *peer, unsigned char *secret, size_t length) {
    EVP_PKEY_CTX *derive = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    int good = EVP_PKEY_derive_init(derive) == 1 && EVP_PKEY_derive_set_peer(derive, peer) == 1
        && EVP_PKEY_derive(derive, secret, &length) == 1;
    EVP_PKEY_CTX_free(derive);
    return good ? length : 0;
}

// As TLS agrees on keys: a pair of this process, a blank key that is given what the other side sent, and OpenSSL on that side.
static void agrees(const char *type, const char *group) {
    unsigned char *sent = NULL, one[100], other[100];
    EVP_PKEY *key = group == NULL ? EVP_PKEY_Q_keygen(NULL, NULL, type) : EVP_PKEY_Q_keygen(NULL, NULL, type, group);
    EVP_PKEY *theirs = group == NULL ? EVP_PKEY_Q_keygen(NULL, "provider=default", type)
                                     : EVP_PKEY_Q_keygen(NULL, "provider=default", type, group);
    EVP_PKEY *blank = EVP_PKEY_new(), *blank_theirs = EVP_PKEY_new();
    is(type, 1, key != NULL && ours(key) && EVP_PKEY_copy_parameters(blank, key));
    size_t length = EVP_PKEY_get1_encoded_public_key(theirs, &sent);
    is(type, 1, length > 0 && EVP_PKEY_set1_encoded_public_key(blank, sent, length));
    is(type, 1, EVP_PKEY_eq(blank, theirs));
    OPENSSL_free(sent);
    length = EVP_PKEY_get1_encoded_public_key(key, &sent);
    is(type, 1, EVP_PKEY_copy_parameters(blank_theirs, theirs) && EVP_PKEY_set1_encoded_public_key(blank_theirs, sent, length));
    size_t size = secret_of(key, blank, one, sizeof one);
    is(type, 1, size > 0 && size == secret_of(theirs, blank_theirs, other, sizeof other) && memcmp(one, other, size) == 0);
    // Where there is less room, some are cut off, and others are no secret.
    size = secret_of(key, blank, one, 16);
    is("less room", (long)secret_of(theirs, blank_theirs, other, 16), (long)size);
    is("its beginning", 1, size == 0 || memcmp(one, other, size) == 0);
    is("no room", 0, (long)secret_of(key, blank, one, 0));
    // What the other side sent may be of any length, and no point.
    is(type, 1, EVP_PKEY_set1_encoded_public_key(blank, sent, length - 1) != 1);
    if (group != NULL) {
        sent[length - 1] ^= 1;
        int taken = EVP_PKEY_set1_encoded_public_key(blank, sent, length) == 1;
        is("no point", 1, !taken || secret_of(key, blank, one, sizeof one) == 0);
    }
    survives(type, key);
    OPENSSL_free(sent);
    EVP_PKEY_free(key);
    EVP_PKEY_free(theirs);
    EVP_PKEY_free(blank);
    EVP_PKEY_free(blank_theirs);
}

// What a key says of the cofactor is heeded wherever it is: set on it, and brought with it.
static void cofactor(void) {
    unsigned char secret[3][30];
    OSSL_PARAM *parts = NULL;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "sect233k1"), *made = NULL;
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    int one = 1, of_made = 0;
    OSSL_PARAM wanted[] = {OSSL_PARAM_utf8_string("group", "sect233k1", 9), OSSL_PARAM_int("use-cofactor-flag", &one), OSSL_PARAM_END};
    is("made with it", 1, EVP_PKEY_keygen_init(maker) == 1 && EVP_PKEY_CTX_set_params(maker, wanted) == 1
        && EVP_PKEY_keygen(maker, &made) == 1 && EVP_PKEY_get_int_param(made, "use-cofactor-flag", &of_made) && of_made);
    EVP_PKEY_CTX_free(maker);
    EVP_PKEY_free(made);
    is("not yet", 30, (long)secret_of(key, key, secret[0], 30));
    is("neither", 0, EVP_PKEY_set_int_param(key, "use-cofactor-flag", 2));
    is("set", 1, EVP_PKEY_set_int_param(key, "use-cofactor-flag", 1));
    is("with a cofactor", 1, EVP_PKEY_todata(key, EVP_PKEY_KEYPAIR, &parts));
    EVP_PKEY *again = made_of("EC", NULL, EVP_PKEY_KEYPAIR, parts);
    EVP_PKEY *plain = made_of("EC", "provider=default", EVP_PKEY_KEYPAIR, parts);
    EVP_PKEY *each[] = {key, again, plain};
    int said = 0;
    is("it says so", 1, EVP_PKEY_get_int_param(again, "use-cofactor-flag", &said) && said);
    for (int i = 0; i < 3; i++) {
        is("its secret", 30, (long)secret_of(each[i], key, secret[1], 30));
        EVP_PKEY_CTX *derive = EVP_PKEY_CTX_new_from_pkey(NULL, plain, "provider=default");
        size_t length = 30;
        is("plain", 1, EVP_PKEY_derive_init(derive) == 1 && EVP_PKEY_derive_set_peer(derive, plain) == 1
            && EVP_PKEY_derive(derive, secret[2], &length));
        is("another", 1, memcmp(secret[0], secret[1], 30) != 0);
        is("the same", 0, memcmp(secret[1], secret[2], 30));
        EVP_PKEY_CTX_free(derive);
    }
    OSSL_PARAM_free(parts);
    for (int i = 0; i < 3; i++)
        EVP_PKEY_free(each[i]);
}

// Kinds that came with OpenSSL 3.5: as many bits as there, where there are such keys.
static void counts(const char *type) {
    OSSL_PARAM *parts = NULL;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, "provider=default", type);
    if (key != NULL && EVP_PKEY_todata(key, EVP_PKEY_KEYPAIR, &parts)) {
        EVP_PKEY *same = made_of(type, "provider=metaslot", EVP_PKEY_KEYPAIR, parts);
        is(type, EVP_PKEY_get_bits(key), EVP_PKEY_get_bits(same));
        is(type, EVP_PKEY_get_security_bits(key), EVP_PKEY_get_security_bits(same));
        is(type, EVP_PKEY_get_size(key), EVP_PKEY_get_size(same));
        EVP_PKEY_free(same);
    }
    OSSL_PARAM_free(parts);
    EVP_PKEY_free(key);
    ERR_clear_error();
}

// No digest at all is signed as the number zero, as OpenSSL does it, and each takes the other's signature.
static void of_nothing(const char *type, EVP_PKEY *key) {
    OSSL_PARAM *parts = NULL;
    is(type, 1, EVP_PKEY_todata(key, EVP_PKEY_KEYPAIR, &parts));
    EVP_PKEY *both[] = {key, made_of(type, "provider=default", EVP_PKEY_KEYPAIR, parts)};
    for (int i = 0; i < 4; i++) {
        unsigned char signature[200], digest[32] = {0};
        size_t length = sizeof signature;
        EVP_PKEY_CTX *sign = EVP_PKEY_CTX_new(both[i % 2], NULL), *verify = EVP_PKEY_CTX_new(both[i / 2], NULL);
        is("an empty digest", 1, EVP_PKEY_sign_init(sign) == 1 && EVP_PKEY_sign(sign, signature, &length, digest, 0) == 1);
        is("its signature", 1, EVP_PKEY_verify_init(verify) == 1 && EVP_PKEY_verify(verify, signature, length, digest, 0) == 1);
        is("that of zero", 1, EVP_PKEY_verify(verify, signature, length, digest, sizeof digest));
        digest[31] = 1;
        is("that of one", 0, EVP_PKEY_verify(verify, signature, length, digest, sizeof digest) == 1);
        EVP_PKEY_CTX_free(sign);
        EVP_PKEY_CTX_free(verify);
    }
    EVP_PKEY_free(both[1]);
    OSSL_PARAM_free(parts);
}

// A child, and its own, use the key of a parent that has used it and one that has not.
static int child(EVP_PKEY *used, EVP_PKEY *fresh) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        int failed = !pairs(NULL, used, fresh) + !pairs(NULL, fresh, used);
        pid_t next = fork();
        if (next == 0)
            _exit(!pairs(NULL, used, fresh));
        int status = -1;
        waitpid(next, &status, 0);
        _exit(failed + (status != 0));
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status == 0;
}

static void *works(void *key) {
    long failed = 0;
    for (int i = 0; i < 20; i++) {
        unsigned char one[100], other[100];
        EVP_PKEY *mine = EVP_PKEY_Q_keygen(NULL, NULL, "X25519"), *theirs = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
        size_t size = secret_of(mine, theirs, one, sizeof one);
        failed += size == 0 || secret_of(theirs, mine, other, sizeof other) != size || memcmp(one, other, size) != 0;
        failed += !pairs(NULL, key, key);
        EVP_PKEY_free(mine);
        EVP_PKEY_free(theirs);
    }
    return (void *)failed;
}

// Threads that use one key for the first time together, and make others meanwhile.
static long together(EVP_PKEY *fresh) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    long failed = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, works, fresh) != 0)
            abort();
    for (int i = 0; i < THREADS; i++) {
        void *answer;
        pthread_join(threads[i], &answer);
        failed += (long)answer;
    }
    return failed;
}

// The provider is unloaded while there are keys and an operation that it has begun.
static void unloads(const char *file) {
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
    is("configured", 1, OSSL_LIB_CTX_load_config(library, getenv("OPENSSL_CONF")));
    OSSL_PROVIDER *provider = OSSL_PROVIDER_load(library, "metaslot");
    EVP_PKEY *key = load(library, file), *made = EVP_PKEY_Q_keygen(library, NULL, "EC", "P-256");
    EVP_MD_CTX *sign = EVP_MD_CTX_new();
    is("before", 1, pairs(library, key, key) && pairs(library, made, made));
    is("begun", 1, EVP_DigestSignInit_ex(sign, NULL, hash_of(key), library, NULL, key, NULL));
    OSSL_PROVIDER_unload(provider);
    EVP_PKEY_free(made);
    EVP_MD_CTX_free(sign);
    EVP_PKEY_free(key);
    OSSL_LIB_CTX_free(library);
}

static EVP_PKEY *late_key;

static void late(void) {
    if (!pairs(NULL, late_key, late_key))
        _exit(99);
    EVP_PKEY_free(late_key);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        EVP_PKEY *key = load(NULL, argv[i]), *fresh = load(NULL, argv[i]), *shared = load(NULL, argv[i]);
        is(argv[i], 1, key != NULL && pairs(NULL, key, key));
        for (int children = 0; children < 3; children++)
            is(argv[i], 1, child(key, fresh));
        is(argv[i], 1, pairs(NULL, key, fresh));
        is("threads", 0, together(shared));
        survives(argv[i], key);
        if (EVP_PKEY_is_a(key, "RSA"))
            without_primes(key);
        if (EVP_PKEY_is_a(key, "EC")) {
            points(key);
            of_nothing("EC", key);
        }
        unloads(argv[i]);
        EVP_PKEY_free(shared);
        EVP_PKEY_free(fresh);
        EVP_PKEY_free(key);
    }
    raw("ED25519", 32);
    raw("X25519", 32);
    mixes("EC", "P-256");
    mixes("ED25519", NULL);
    agrees("X25519", NULL);
    agrees("EC", "P-256");
    agrees("EC", "P-521");
    counts("ML-DSA-65");
    counts("SLH-DSA-SHA2-128f");
    counts("ML-KEM-512");
    counts("ML-KEM-1024");
    // An OpenSSL that is built without curves on binary fields has nothing to compare with.
    EC_GROUP *binary = EC_GROUP_new_by_curve_name(NID_sect233k1);
    if (binary != NULL) {
        cofactor();
        binary_points();
    }
    EC_GROUP_free(binary);
    ERR_clear_error();
    late_key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    is("a new key of RSA", 1, late_key != NULL && ours(late_key));
    survives("a new key of RSA", late_key);
    atexit(late);
    return bad;
}
