/* SPDX-License-Identifier: Apache-2.0 */
/* ML-KEM: what one side seals the other opens; what fails makes no key and writes nothing. */
#include "common.h"

static struct {
	CK_ML_KEM_PARAMETER_SET_TYPE set;
	CK_ULONG public, ciphertext;
} sets[] = {{CKP_ML_KEM_512, 800, 768}, {CKP_ML_KEM_768, 1184, 1088}, {CKP_ML_KEM_1024, 1568, 1568}};

static CK_MECHANISM kem = {CKM_ML_KEM, NULL, 0};
static CK_OBJECT_CLASS secret_class = CKO_SECRET_KEY;
static CK_OBJECT_HANDLE public_key, private_key;
static CK_SESSION_HANDLE session;

static void make(CK_ML_KEM_PARAMETER_SET_TYPE set, CK_ATTRIBUTE *more, CK_ULONG count)
{
	CK_MECHANISM mechanism = {CKM_ML_KEM_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_PARAMETER_SET, &set, sizeof(set)}};
	CK_ATTRIBUTE private[5] = {{CKA_TOKEN, &yes, 1}, {CKA_SENSITIVE, &yes, 1}};
	for (CK_ULONG at = 0; at < count; at++)
		private[2 + at] = more[at];
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 1, private, 2 + count, &public_key,
				  &private_key));
}

static void value(CK_OBJECT_HANDLE key, CK_BYTE bytes[32])
{
	CK_ULONG length = 0;
	CK_ATTRIBUTE attributes[] = {{CKA_VALUE, bytes, 32}, {CKA_VALUE_LEN, &length, sizeof(length)}};
	OK(p11->C_GetAttributeValue(session, key, attributes, 2));
	CHECK(attributes[0].ulValueLen == 32 && length == 32);
}

static CK_BBOOL flag(CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type)
{
	CK_BBOOL said = 2;
	CK_ATTRIBUTE attribute = {type, &said, 1};
	OK(p11->C_GetAttributeValue(session, key, &attribute, 1));
	return said;
}

/* Objects of the session's kind that a search finds. */
static CK_ULONG secrets(void)
{
	CK_ATTRIBUTE query = {CKA_CLASS, &secret_class, sizeof(secret_class)};
	CK_OBJECT_HANDLE keys[64];
	CK_ULONG count;
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, keys, 64, &count));
	OK(p11->C_FindObjectsFinal(session));
	return count;
}

static void agree(CK_ULONG expected)
{
	static CK_BYTE ciphertext[2000], a[32], b[32];
	CK_ULONG length = 0, before = secrets();
	CK_ATTRIBUTE open[] = {{CKA_EXTRACTABLE, &yes, 1}, {CKA_SENSITIVE, &no, 1}};
	CK_OBJECT_HANDLE sealed = 77, opened;
	OK(p11->C_EncapsulateKey(session, &kem, public_key, open, 2, NULL, &length, &sealed));
	CHECK(length == expected && sealed == 77);
	length = expected - 1;
	EXPECT(p11->C_EncapsulateKey(session, &kem, public_key, open, 2, ciphertext, &length, &sealed),
	       CKR_BUFFER_TOO_SMALL);
	CHECK(length == expected && sealed == 77 && ciphertext[0] == 0);
	CHECK(secrets() == before);
	length = sizeof(ciphertext);
	OK(p11->C_EncapsulateKey(session, &kem, public_key, open, 2, ciphertext, &length, &sealed));
	CHECK(length == expected);
	OK(p11->C_DecapsulateKey(session, &kem, private_key, open, 2, ciphertext, length, &opened));
	value(sealed, a);
	value(opened, b);
	CHECK(memcmp(a, b, 32) == 0);
	/* The other side knows it, and it was not made here alone. */
	CHECK(!flag(sealed, CKA_LOCAL) && !flag(opened, CKA_LOCAL));
	CHECK(!flag(sealed, CKA_NEVER_EXTRACTABLE) && !flag(opened, CKA_ALWAYS_SENSITIVE));
	EXPECT(p11->C_DecapsulateKey(session, &kem, private_key, open, 2, ciphertext, length - 1,
				     &opened),
	       CKR_WRAPPED_KEY_LEN_RANGE);
	ciphertext[3] ^= 1;
	OK(p11->C_DecapsulateKey(session, &kem, private_key, open, 2, ciphertext, length, &opened));
	value(opened, b);
	CHECK(memcmp(a, b, 32) != 0);
	memset(ciphertext, 0, sizeof(ciphertext));
}

/* What the template says, and what it may not say. */
static void templates(void)
{
	static CK_BYTE ciphertext[2000];
	CK_KEY_TYPE aes = CKK_AES, des = CKK_DES3, rsa = CKK_RSA;
	CK_OBJECT_CLASS private = CKO_PRIVATE_KEY;
	CK_ULONG right = 32, wrong = 16, length = sizeof(ciphertext), before = secrets();
	CK_ATTRIBUTE good[] = {{CKA_CLASS, &secret_class, sizeof(secret_class)},
			       {CKA_KEY_TYPE, &aes, sizeof(aes)},
			       {CKA_VALUE_LEN, &right, sizeof(right)}};
	struct {
		CK_ATTRIBUTE said;
		CK_RV expected;
	} bad[] = {{{CKA_VALUE_LEN, &wrong, sizeof(wrong)}, CKR_TEMPLATE_INCONSISTENT},
		   {{CKA_KEY_TYPE, &rsa, sizeof(rsa)}, CKR_TEMPLATE_INCONSISTENT},
		   {{CKA_KEY_TYPE, &des, sizeof(des)}, CKR_MECHANISM_INVALID},
		   {{CKA_CLASS, &private, sizeof(private)}, CKR_TEMPLATE_INCONSISTENT},
		   {{CKA_LOCAL, &yes, 1}, CKR_ATTRIBUTE_READ_ONLY},
		   {{CKA_VALUE, ciphertext, 32}, CKR_ATTRIBUTE_READ_ONLY}};
	CK_OBJECT_HANDLE sealed, opened;
	CK_MECHANISM ecb = {CKM_AES_ECB, NULL, 0};
	CK_BYTE block[16] = "sixteen bytes...", out[16], back[16];
	CK_ULONG sixteen = 16;
	for (unsigned at = 0; at < sizeof(bad) / sizeof(bad[0]); at++) {
		length = sizeof(ciphertext);
		EXPECT(p11->C_EncapsulateKey(session, &kem, public_key, &bad[at].said, 1, ciphertext,
					     &length, &sealed),
		       bad[at].expected);
		CHECK(ciphertext[0] == 0 && secrets() == before);
	}
	length = sizeof(ciphertext);
	OK(p11->C_EncapsulateKey(session, &kem, public_key, good, 3, ciphertext, &length, &sealed));
	OK(p11->C_DecapsulateKey(session, &kem, private_key, good, 3, ciphertext, length, &opened));
	OK(p11->C_EncryptInit(session, &ecb, sealed));
	OK(p11->C_Encrypt(session, block, 16, out, &sixteen));
	OK(p11->C_DecryptInit(session, &ecb, opened));
	OK(p11->C_Decrypt(session, out, 16, back, &sixteen));
	CHECK(memcmp(block, back, 16) == 0);
	for (unsigned at = 0; at < sizeof(bad) / sizeof(bad[0]); at++)
		EXPECT(p11->C_DecapsulateKey(session, &kem, private_key, &bad[at].said, 1, ciphertext,
					     length, &opened),
		       bad[at].expected);
	CHECK(secrets() == before + 2);
	memset(ciphertext, 0, sizeof(ciphertext));
}

/* Which keys may, and by which mechanism. */
static void keys(void)
{
	static CK_BYTE ciphertext[2000];
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, dsa = {CKM_ML_DSA, NULL, 0};
	CK_ATTRIBUTE may_not[] = {{CKA_DECAPSULATE, &no, 1}};
	CK_MECHANISM_TYPE only[] = {CKM_AES_ECB};
	CK_ATTRIBUTE other[] = {{CKA_ALLOWED_MECHANISMS, only, sizeof(only)}};
	CK_ULONG bytes = 32, length = sizeof(ciphertext);
	CK_ATTRIBUTE secret[] = {{CKA_VALUE_LEN, &bytes, sizeof(bytes)}};
	CK_OBJECT_HANDLE aes, made;
	OK(p11->C_GenerateKey(session, &generate, secret, 1, &aes));
	EXPECT(p11->C_EncapsulateKey(session, &kem, aes, NULL, 0, ciphertext, &length, &made),
	       CKR_KEY_TYPE_INCONSISTENT);
	EXPECT(p11->C_EncapsulateKey(session, &dsa, public_key, NULL, 0, ciphertext, &length, &made),
	       CKR_MECHANISM_INVALID);
	EXPECT(p11->C_EncapsulateKey(session, &kem, private_key, NULL, 0, ciphertext, &length, &made),
	       CKR_KEY_FUNCTION_NOT_PERMITTED);
	EXPECT(p11->C_EncapsulateKey(session, &kem, 4711, NULL, 0, ciphertext, &length, &made),
	       CKR_KEY_HANDLE_INVALID);
	EXPECT(p11->C_DecapsulateKey(session, &kem, 4711, NULL, 0, ciphertext, 768, &made),
	       CKR_UNWRAPPING_KEY_HANDLE_INVALID);
	EXPECT(p11->C_DecapsulateKey(session, &kem, aes, NULL, 0, ciphertext, 768, &made),
	       CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT);
	EXPECT(p11->C_DecapsulateKey(session, &dsa, 4711, NULL, 0, ciphertext, 768, &made),
	       CKR_MECHANISM_INVALID);
	EXPECT(p11->C_EncapsulateKey(session, &kem, public_key, NULL, 0, ciphertext, NULL, &made),
	       CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_EncapsulateKey(session, &kem, public_key, NULL, 0, ciphertext, &length, NULL),
	       CKR_ARGUMENTS_BAD);
	make(CKP_ML_KEM_512, may_not, 1);
	EXPECT(p11->C_DecapsulateKey(session, &kem, private_key, NULL, 0, ciphertext, 768, &made),
	       CKR_KEY_FUNCTION_NOT_PERMITTED);
	make(CKP_ML_KEM_512, other, 1);
	EXPECT(p11->C_DecapsulateKey(session, &kem, private_key, NULL, 0, ciphertext, 768, &made),
	       CKR_MECHANISM_INVALID);
}

/* A template that names another use makes a key for that alone. */
static void another_use(void)
{
	CK_ATTRIBUTE unwraps[] = {{CKA_UNWRAP, &yes, 1}};
	make(CKP_ML_KEM_512, unwraps, 1);
	CHECK(!flag(private_key, CKA_DECAPSULATE) && !flag(public_key, CKA_ENCAPSULATE));
	make(CKP_ML_KEM_512, NULL, 0);
	CHECK(flag(private_key, CKA_DECAPSULATE) && flag(public_key, CKA_ENCAPSULATE));
}

/* A key's own template is what all secrets are that it opens. */
static void imposed(void)
{
	static CK_BYTE ciphertext[2000];
	CK_ATTRIBUTE hidden[] = {{CKA_SENSITIVE, &yes, 1}, {CKA_EXTRACTABLE, &no, 1}};
	CK_ATTRIBUTE own[] = {{CKA_DECAPSULATE_TEMPLATE, hidden, sizeof(hidden)}};
	CK_ATTRIBUTE open[] = {{CKA_SENSITIVE, &no, 1}};
	CK_ULONG length = sizeof(ciphertext);
	CK_OBJECT_HANDLE sealed, opened;
	make(CKP_ML_KEM_768, own, 1);
	OK(p11->C_EncapsulateKey(session, &kem, public_key, open, 1, ciphertext, &length, &sealed));
	/* The sizes of the key that decapsulates are fine. */
	CK_ULONG wrongs[] = {0, 1, 1UL << 40, ~0UL};
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		CK_ATTRIBUTE says = {CKA_VALUE_LEN, &wrongs[i], sizeof(*wrongs)};
		EXPECT(p11->C_DecapsulateKey(session, &kem, private_key, &says, 1, ciphertext, length, &opened),
		       CKR_TEMPLATE_INCONSISTENT);
	}
	EXPECT(p11->C_DecapsulateKey(session, &kem, private_key, open, 1, ciphertext, length, &opened),
	       CKR_TEMPLATE_INCONSISTENT);
	OK(p11->C_DecapsulateKey(session, &kem, private_key, NULL, 0, ciphertext, length, &opened));
	CHECK(flag(opened, CKA_SENSITIVE) && !flag(opened, CKA_EXTRACTABLE));
}

int main(void)
{
	session = begin_as_user();
	for (int at = 0; at < 3; at++) {
		CK_ATTRIBUTE length = {CKA_VALUE, NULL, 0};
		make(sets[at].set, NULL, 0);
		OK(p11->C_GetAttributeValue(session, public_key, &length, 1));
		CHECK(length.ulValueLen == sets[at].public);
		agree(sets[at].ciphertext);
		templates();
	}
	keys();
	another_use();
	imposed();
	OK(p11->C_Finalize(NULL));
	return 0;
}
