/* SPDX-License-Identifier: Apache-2.0 */
/* Encapsulation by RSA, ECDH and Diffie-Hellman: what comes out of a ciphertext is what C_Decrypt or
 * C_DeriveKey make of it, and what fails makes no key and writes nothing. */
#include "common.h"

/* ffdhe2048 (RFC 7919 appendix A.1) */
static const char digits[] =
	"FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695A9E13641146433FBCC939DCE249B3EF97D2FE363630C75D8"
	"F681B202AEC4617AD3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3B557135E7F57C935984F0C70E0E68B77E2A689DAF3EFE872"
	"1DF158A136ADE73530ACCA4F483A797ABC0AB182B324FB61D108A94BB2C8E3FBB96ADAB760D7F4681D4F42A3DE394DF4AE56EDE76372BB19"
	"0B07A7C8EE0A6D709E02FCE1CDF7E2ECC03404CD28342F619172FE9CE98583FF8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC2EC22005"
	"C58EF1837D1683B2C6F34A26C1B2EFFA886B423861285C97FFFFFFFFFFFFFFFF";

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE public_key, private_key;
static CK_BYTE prime[512], order[512], two = 2;
static CK_ULONG prime_length;
static CK_OBJECT_CLASS secret_class = CKO_SECRET_KEY;
static CK_ATTRIBUTE readable[] = {{CKA_EXTRACTABLE, &yes, 1}, {CKA_SENSITIVE, &no, 1}};

static void pair(CK_MECHANISM_TYPE how, CK_ATTRIBUTE *domain, CK_ULONG count, CK_ATTRIBUTE *more,
		 CK_ULONG more_count)
{
	CK_MECHANISM mechanism = {how, NULL, 0};
	CK_ATTRIBUTE public[8] = {{CKA_ENCAPSULATE, &yes, 1}};
	CK_ATTRIBUTE private[8] = {{CKA_DECAPSULATE, &yes, 1}, {CKA_SENSITIVE, &yes, 1}};
	memcpy(public + 1, domain, count * sizeof(*domain));
	if (more_count > 0) memcpy(private + 2, more, more_count * sizeof(*more));
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 1 + count, private, 2 + more_count,
				  &public_key, &private_key));
}

static CK_ULONG value(CK_OBJECT_HANDLE key, CK_BYTE bytes[600])
{
	CK_ATTRIBUTE attribute = {CKA_VALUE, bytes, 600};
	OK(p11->C_GetAttributeValue(session, key, &attribute, 1));
	return attribute.ulValueLen;
}

static CK_ULONG secrets(void)
{
	CK_ATTRIBUTE query = {CKA_CLASS, &secret_class, sizeof(secret_class)};
	CK_OBJECT_HANDLE keys[256];
	CK_ULONG count;
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, keys, 256, &count));
	OK(p11->C_FindObjectsFinal(session));
	return count;
}

/* A secret of `length` bytes (0: not said, and `natural` come), both ways; it is left in `secret`, its ciphertext in `sealed`. */
static CK_BYTE secret[600], sealed[600], scratch[600];
static CK_ULONG sealed_length;

static void agree(CK_MECHANISM *by, CK_ULONG length, CK_ULONG natural, CK_ULONG ciphertext)
{
	CK_ATTRIBUTE template[] = {readable[0], readable[1], {CKA_VALUE_LEN, &length, sizeof(length)}};
	CK_ULONG count = length == 0 ? 2 : 3, expected = length == 0 ? natural : length;
	CK_ULONG before = secrets();
	CK_OBJECT_HANDLE here = 77, there = 77;
	sealed_length = 4711;
	memset(sealed, 0, sizeof(sealed));
	OK(p11->C_EncapsulateKey(session, by, public_key, template, count, NULL, &sealed_length, NULL));
	CHECK(sealed_length == ciphertext);
	sealed_length--;
	EXPECT(p11->C_EncapsulateKey(session, by, public_key, template, count, sealed, &sealed_length,
				     &here),
	       CKR_BUFFER_TOO_SMALL);
	CHECK(sealed_length == ciphertext && here == 77 && sealed[0] == 0 && secrets() == before);
	sealed_length = sizeof(sealed);
	OK(p11->C_EncapsulateKey(session, by, public_key, template, count, sealed, &sealed_length, &here));
	CHECK(sealed_length == ciphertext && secrets() == before + 1);
	OK(p11->C_DecapsulateKey(session, by, private_key, template, count, sealed, sealed_length, &there));
	CHECK(value(here, secret) == expected && value(there, scratch) == expected);
	CHECK(memcmp(secret, scratch, expected) == 0);
	OK(p11->C_DestroyObject(session, here));
	OK(p11->C_DestroyObject(session, there));
	EXPECT(p11->C_DecapsulateKey(session, by, private_key, template, count, sealed,
				     sealed_length + 1, &there),
	       CKR_WRAPPED_KEY_LEN_RANGE);
	EXPECT(p11->C_DecapsulateKey(session, by, private_key, template, count, sealed, 0, &there),
	       CKR_WRAPPED_KEY_LEN_RANGE);
	EXPECT(p11->C_DecapsulateKey(session, by, public_key, template, count, sealed, sealed_length,
				     &there),
	       CKR_KEY_FUNCTION_NOT_PERMITTED);
	CHECK(secrets() == before);
}

static void refuse(CK_MECHANISM *by, CK_ATTRIBUTE *template, CK_ULONG count, CK_RV expected)
{
	CK_ULONG length = sizeof(scratch), before = secrets();
	CK_OBJECT_HANDLE made = 77;
	memset(scratch, 0, sizeof(scratch));
	EXPECT(p11->C_EncapsulateKey(session, by, public_key, template, count, scratch, &length, &made),
	       expected);
	CHECK(made == 77 && scratch[0] == 0 && scratch[1] == 0 && secrets() == before);
}

/* By C_Decrypt the carried secret is what was agreed on. */
static void decrypts(CK_MECHANISM *by, CK_ULONG expected, CK_ULONG from)
{
	CK_ULONG length = sizeof(scratch);
	OK(p11->C_DecryptInit(session, by, private_key));
	OK(p11->C_Decrypt(session, sealed, sealed_length, scratch, &length));
	CHECK(length == from + expected && memcmp(scratch + from, secret, expected) == 0);
}

static void rsa(void)
{
	CK_ULONG bits = 2048, none = 0, long_one = 246, short_one = 13, aes_length = 32, odd = 20;
	CK_KEY_TYPE aes = CKK_AES;
	CK_ATTRIBUTE size = {CKA_MODULUS_BITS, &bits, sizeof(bits)};
	CK_ATTRIBUTE uses[] = {{CKA_DECRYPT, &yes, 1}};
	CK_RSA_PKCS_OAEP_PARAMS oaep = {CKM_SHA256, CKG_MGF1_SHA256, CKZ_DATA_SPECIFIED, NULL, 0};
	CK_MECHANISM pkcs = {CKM_RSA_PKCS, NULL, 0}, x509 = {CKM_RSA_X_509, NULL, 0};
	CK_MECHANISM by_oaep = {CKM_RSA_PKCS_OAEP, &oaep, sizeof(oaep)};
	CK_MECHANISM bare = {CKM_RSA_PKCS_OAEP, NULL, 0}, aes_ecb = {CKM_AES_ECB, NULL, 0};
	CK_MECHANISM signs = {CKM_SHA256_RSA_PKCS, NULL, 0};
	CK_ATTRIBUTE length = {CKA_VALUE_LEN, &none, sizeof(none)};
	CK_ATTRIBUTE typed[] = {{CKA_KEY_TYPE, &aes, sizeof(aes)}, {CKA_VALUE_LEN, &aes_length, sizeof(aes_length)}};
	CK_BYTE block[16] = "sixteen bytes..", out[16];
	CK_ULONG sixteen = 16;
	CK_OBJECT_HANDLE here, there;
	pair(CKM_RSA_PKCS_KEY_PAIR_GEN, &size, 1, uses, 1);
	agree(&pkcs, 32, 0, 256);
	decrypts(&pkcs, 32, 0);
	agree(&pkcs, 245, 0, 256);
	agree(&by_oaep, 32, 0, 256);
	decrypts(&by_oaep, 32, 0);
	agree(&by_oaep, 190, 0, 256);
	agree(&x509, 0, 256, 256);
	decrypts(&x509, 256, 0);
	/* The ciphertext says how long the secret is; another length is not its. */
	agree(&by_oaep, 48, 0, 256);
	OK(p11->C_DecapsulateKey(session, &by_oaep, private_key, readable, 2, sealed, 256, &there));
	CHECK(value(there, scratch) == 48 && memcmp(scratch, secret, 48) == 0);
	EXPECT(p11->C_DecapsulateKey(session, &by_oaep, private_key, typed, 2, sealed, 256, &there),
	       CKR_WRAPPED_KEY_LEN_RANGE);
	EXPECT(p11->C_DecapsulateKey(session, &by_oaep, private_key, typed, 1, sealed, 256, &there),
	       CKR_WRAPPED_KEY_LEN_RANGE);
	/* No more than it can carry; too short for the policy; 0. */
	CK_ULONG wrongs[] = {246, 1UL << 40, short_one, none};
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		length.pValue = &wrongs[i];
		EXPECT(p11->C_DecapsulateKey(session, &by_oaep, private_key, &length, 1, sealed, 256, &there),
		       CKR_WRAPPED_KEY_LEN_RANGE);
	}
	/* Nobody says how long; too long; too short for the policy; 0; a length that is no AES key's. */
	refuse(&pkcs, readable, 2, CKR_TEMPLATE_INCOMPLETE);
	refuse(&by_oaep, readable, 2, CKR_TEMPLATE_INCOMPLETE);
	refuse(&pkcs, typed, 1, CKR_TEMPLATE_INCOMPLETE);
	length.pValue = &long_one;
	refuse(&pkcs, &length, 1, CKR_TEMPLATE_INCONSISTENT);
	refuse(&x509, &length, 1, CKR_TEMPLATE_INCONSISTENT);
	length.pValue = &short_one;
	refuse(&by_oaep, &length, 1, CKR_KEY_SIZE_RANGE);
	length.pValue = &none;
	refuse(&by_oaep, &length, 1, CKR_KEY_SIZE_RANGE);
	typed[1].pValue = &odd;
	refuse(&by_oaep, typed, 2, CKR_TEMPLATE_INCONSISTENT);
	refuse(&bare, typed, 2, CKR_MECHANISM_PARAM_INVALID);
	refuse(&signs, typed, 2, CKR_MECHANISM_INVALID);
	EXPECT(p11->C_DecapsulateKey(session, &signs, private_key, typed, 1, sealed, 256, &there),
	       CKR_MECHANISM_INVALID);
	/* A key for AES, used on both sides. */
	typed[1].pValue = &aes_length;
	sealed_length = sizeof(sealed);
	OK(p11->C_EncapsulateKey(session, &by_oaep, public_key, typed, 2, sealed, &sealed_length, &here));
	OK(p11->C_DecapsulateKey(session, &by_oaep, private_key, typed, 1, sealed, 256, &there));
	OK(p11->C_EncryptInit(session, &aes_ecb, here));
	OK(p11->C_Encrypt(session, block, 16, out, &sixteen));
	OK(p11->C_DecryptInit(session, &aes_ecb, there));
	OK(p11->C_Decrypt(session, out, 16, scratch, &sixteen));
	CHECK(memcmp(block, scratch, 16) == 0);
	/* A changed ciphertext: OAEP notices; PKCS #1 v1.5 gives another secret, the same each time. */
	sealed[100] ^= 1;
	EXPECT(p11->C_DecapsulateKey(session, &by_oaep, private_key, readable, 2, sealed, 256, &there),
	       CKR_WRAPPED_KEY_INVALID);
	for (int at = 0, same = 0; same < 3; at++) {
		CK_RV first, again;
		CK_ULONG n;
		sealed[200] = (CK_BYTE)at;
		first = p11->C_DecapsulateKey(session, &pkcs, private_key, readable, 2, sealed, 256, &here);
		again = p11->C_DecapsulateKey(session, &pkcs, private_key, readable, 2, sealed, 256, &there);
		CHECK(first == again && (first == CKR_OK || first == CKR_WRAPPED_KEY_LEN_RANGE));
		if (first != CKR_OK) continue;
		n = value(here, secret);
		CHECK(n >= 14 && value(there, scratch) == n && memcmp(secret, scratch, n) == 0);
		same++;
	}
	/* 0, 1 and n-1 are their own powers. */
	memset(sealed, 0, 256);
	EXPECT(p11->C_DecapsulateKey(session, &x509, private_key, readable, 2, sealed, 256, &there),
	       CKR_WRAPPED_KEY_INVALID);
	sealed[255] = 1;
	EXPECT(p11->C_DecapsulateKey(session, &x509, private_key, readable, 2, sealed, 256, &there),
	       CKR_WRAPPED_KEY_INVALID);
	memset(sealed, 255, 256);
	EXPECT(p11->C_DecapsulateKey(session, &x509, private_key, readable, 2, sealed, 256, &there),
	       CKR_WRAPPED_KEY_INVALID);
}

/* What C_DeriveKey makes of the ciphertext, which is in the parameter then. */
static void derives(CK_MECHANISM *by, CK_ULONG length)
{
	CK_ATTRIBUTE template[] = {readable[0], readable[1], {CKA_VALUE_LEN, &length, sizeof(length)}};
	CK_OBJECT_HANDLE made;
	OK(p11->C_DeriveKey(session, by, private_key, template, 3, &made));
	CHECK(value(made, scratch) == length && memcmp(scratch, secret, length) == 0);
	OK(p11->C_DestroyObject(session, made));
}

static void curve(CK_BYTE *params, CK_ULONG length, CK_MECHANISM_TYPE how, CK_MECHANISM_TYPE by,
		  CK_ULONG natural, CK_ULONG point)
{
	CK_ATTRIBUTE domain = {CKA_EC_PARAMS, params, length}, uses[] = {{CKA_DERIVE, &yes, 1}};
	CK_ECDH1_DERIVE_PARAMS p = {CKD_NULL, 0, NULL, 0, NULL};
	CK_MECHANISM mechanism = {by, &p, sizeof(p)};
	CK_BYTE shared[] = "shared", der[600] = {4};
	CK_ULONG too_long = natural + 1, at;
	CK_ATTRIBUTE longer = {CKA_VALUE_LEN, &too_long, sizeof(too_long)};
	CK_OBJECT_HANDLE there;
	pair(how, &domain, 1, uses, 1);
	agree(&mechanism, 0, natural, point);
	p.pPublicData = sealed;
	p.ulPublicDataLen = point;
	derives(&mechanism, natural);
	/* One public value is the key's, the other the ciphertext: a third has no place. */
	refuse(&mechanism, readable, 2, CKR_MECHANISM_PARAM_INVALID);
	EXPECT(p11->C_DecapsulateKey(session, &mechanism, private_key, readable, 2, sealed, point, &there),
	       CKR_MECHANISM_PARAM_INVALID);
	p = (CK_ECDH1_DERIVE_PARAMS){CKD_NULL, 0, NULL, 0, NULL};
	agree(&mechanism, 16, 0, point);
	refuse(&mechanism, &longer, 1, CKR_TEMPLATE_INCONSISTENT);
	/* A DER OCTET STRING, as in C_DeriveKey. */
	at = point < 128 ? 2 : point < 256 ? 3 : 4;
	der[1] = point < 128 ? (CK_BYTE)point : point < 256 ? 0x81 : 0x82;
	if (point >= 256) der[2] = (CK_BYTE)(point >> 8);
	if (point >= 128) der[at - 1] = (CK_BYTE)point;
	memcpy(der + at, sealed, point);
	too_long = 16;
	CK_ATTRIBUTE template[] = {readable[0], readable[1], longer};
	OK(p11->C_DecapsulateKey(session, &mechanism, private_key, template, 3, der, at + point, &there));
	CHECK(value(there, scratch) == 16 && memcmp(scratch, secret, 16) == 0);
	/* Not on the curve. */
	if (how == CKM_EC_KEY_PAIR_GEN) {
		sealed[point - 1] ^= 1;
		EXPECT(p11->C_DecapsulateKey(session, &mechanism, private_key, readable, 2, sealed, point, &there),
		       CKR_WRAPPED_KEY_INVALID);
	}
	/* A point of small order: the key is wrong, and no parameter. */
	if (how == CKM_EC_MONTGOMERY_KEY_PAIR_GEN) {
		CK_OBJECT_CLASS class = CKO_PUBLIC_KEY;
		CK_KEY_TYPE type = CKK_EC_MONTGOMERY;
		CK_BYTE low[32] = {1};
		CK_OBJECT_HANDLE good = public_key;
		CK_ATTRIBUTE small[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_KEY_TYPE, &type, sizeof(type)}, domain,
					{CKA_EC_POINT, low, sizeof(low)}, {CKA_ENCAPSULATE, &yes, 1}};
		OK(p11->C_CreateObject(session, small, 5, &public_key));
		refuse(&mechanism, readable, 2, CKR_PUBLIC_KEY_INVALID);
		public_key = good;
	}
	p = (CK_ECDH1_DERIVE_PARAMS){CKD_SHA256_KDF, sizeof(shared), shared, 0, NULL};
	refuse(&mechanism, readable, 2, CKR_TEMPLATE_INCOMPLETE);
	agree(&mechanism, 100, 0, point);
	p.pPublicData = sealed;
	p.ulPublicDataLen = point;
	derives(&mechanism, 100);
}

static void modulo(CK_MECHANISM_TYPE how, CK_MECHANISM_TYPE by, int ordered)
{
	CK_ATTRIBUTE domain[] = {{CKA_PRIME, prime, prime_length}, {CKA_BASE, &two, 1}, {CKA_SUBPRIME, order, prime_length}};
	CK_ATTRIBUTE uses[] = {{CKA_DERIVE, &yes, 1}};
	CK_X9_42_DH1_DERIVE_PARAMS p = {CKD_NULL, 0, NULL, 0, NULL};
	CK_MECHANISM mechanism = {by, ordered ? (void *)&p : NULL, ordered ? sizeof(p) : 0};
	CK_OBJECT_HANDLE there;
	pair(how, domain, ordered ? 3 : 2, uses, 1);
	agree(&mechanism, 0, prime_length, prime_length);
	mechanism.pParameter = ordered ? (void *)&p : sealed;
	if (!ordered) mechanism.ulParameterLen = prime_length;
	p.pPublicData = sealed;
	p.ulPublicDataLen = prime_length;
	derives(&mechanism, prime_length);
	refuse(&mechanism, readable, 2, CKR_MECHANISM_PARAM_INVALID);
	mechanism.ulParameterLen = ordered ? sizeof(p) : 0;
	p = (CK_X9_42_DH1_DERIVE_PARAMS){CKD_NULL, 0, NULL, 0, NULL};
	agree(&mechanism, 32, 0, prime_length);
	/* 1, and the prime, are no public values. */
	memset(sealed, 0, prime_length);
	sealed[prime_length - 1] = 1;
	EXPECT(p11->C_DecapsulateKey(session, &mechanism, private_key, readable, 2, sealed, prime_length, &there),
	       CKR_WRAPPED_KEY_INVALID);
	EXPECT(p11->C_DecapsulateKey(session, &mechanism, private_key, readable, 2, prime, prime_length, &there),
	       CKR_WRAPPED_KEY_INVALID);
	if (!ordered) return;
	p.kdf = CKD_SHA1_KDF_CONCATENATE;
	agree(&mechanism, 40, 0, prime_length);
	p.pPublicData = sealed;
	p.ulPublicDataLen = prime_length;
	derives(&mechanism, 40);
}

/* What a key's template hides comes out in no other way. */
static void hidden(CK_BYTE *params, CK_ULONG length)
{
	CK_ATTRIBUTE all[] = {{CKA_SENSITIVE, &yes, 1}, {CKA_EXTRACTABLE, &no, 1}};
	CK_BBOOL may = no;
	CK_ATTRIBUTE own[] = {{CKA_DECAPSULATE_TEMPLATE, all, sizeof(all)}, {CKA_DERIVE, &may, 1},
			      {CKA_SIGN, &no, 1}, {CKA_SIGN_RECOVER, &no, 1}};
	CK_ATTRIBUTE domain = {CKA_EC_PARAMS, params, length};
	CK_ECDH1_DERIVE_PARAMS p = {CKD_NULL, 0, NULL, 0, NULL};
	CK_ULONG bits = 2048, bytes = 32;
	CK_ATTRIBUTE size = {CKA_MODULUS_BITS, &bits, sizeof(bits)};
	CK_ATTRIBUTE says[] = {{CKA_VALUE_LEN, &bytes, sizeof(bytes)}};
	CK_RSA_PKCS_OAEP_PARAMS oaep = {CKM_SHA256, CKG_MGF1_SHA256, CKZ_DATA_SPECIFIED, NULL, 0};
	CK_MECHANISM by[] = {{CKM_RSA_PKCS_OAEP, &oaep, sizeof(oaep)}, {CKM_RSA_PKCS, NULL, 0}, {CKM_ECDH1_DERIVE, &p, sizeof(p)}};
	CK_OBJECT_HANDLE here, there;
	CK_BBOOL sensitive = no;
	CK_ATTRIBUTE shown = {CKA_SENSITIVE, &sensitive, 1};
	/* PKCS#11 3.2 §5.18.8: a public key imposes by another error. */
	CK_ATTRIBUTE open[] = {size, {CKA_ENCAPSULATE_TEMPLATE, all, sizeof(all)}};
	pair(CKM_RSA_PKCS_KEY_PAIR_GEN, open, 2, own + 2, 2);
	refuse(by, readable, 2, CKR_KEY_HANDLE_INVALID);
	for (int with = 0; with < 2; with++) {
		may = with ? CK_TRUE : CK_FALSE;
		own[1].type = CKA_DECRYPT;
		pair(CKM_RSA_PKCS_KEY_PAIR_GEN, &size, 1, own, 4);
		for (int at = 0; at < 2; at++) {
			CK_RV expected = with ? CKR_KEY_FUNCTION_NOT_PERMITTED : CKR_OK;
			if (at == 1) expected = CKR_MECHANISM_INVALID;
			sealed_length = sizeof(sealed);
			OK(p11->C_EncapsulateKey(session, &by[at], public_key, says, 1, sealed,
						 &sealed_length, &here));
			EXPECT(p11->C_DecapsulateKey(session, &by[at], private_key, says, 1, sealed,
						     sealed_length, &there),
			       expected);
			if (expected != CKR_OK) continue;
			OK(p11->C_GetAttributeValue(session, there, &shown, 1));
			CHECK(sensitive);
			EXPECT(p11->C_DecapsulateKey(session, &by[at], private_key, readable, 2, sealed,
						     sealed_length, &there),
			       CKR_TEMPLATE_INCONSISTENT);
		}
		own[1].type = CKA_DERIVE;
		pair(CKM_EC_KEY_PAIR_GEN, &domain, 1, own, 4);
		sealed_length = sizeof(sealed);
		OK(p11->C_EncapsulateKey(session, &by[2], public_key, says, 1, sealed, &sealed_length, &here));
		EXPECT(p11->C_DecapsulateKey(session, &by[2], private_key, says, 1, sealed, sealed_length,
					     &there),
		       with ? CKR_KEY_FUNCTION_NOT_PERMITTED : CKR_OK);
		p.kdf = CKD_SHA256_KDF;
		EXPECT(p11->C_DecapsulateKey(session, &by[2], private_key, says, 1, sealed, sealed_length,
					     &there),
		       CKR_MECHANISM_PARAM_INVALID);
		p.kdf = CKD_NULL;
	}
	/* The other way round: what is derived is hidden, and decapsulated it is not. */
	own[0].type = CKA_DERIVE_TEMPLATE;
	own[1].type = CKA_DERIVE;
	pair(CKM_EC_KEY_PAIR_GEN, &domain, 1, own, 2);
	sealed_length = sizeof(sealed);
	OK(p11->C_EncapsulateKey(session, &by[2], public_key, says, 1, sealed, &sealed_length, &here));
	OK(p11->C_DecapsulateKey(session, &by[2], private_key, readable, 2, sealed, sealed_length, &there));
	p.pPublicData = sealed;
	p.ulPublicDataLen = sealed_length;
	EXPECT(p11->C_DeriveKey(session, &by[2], private_key, says, 1, &there), CKR_KEY_FUNCTION_NOT_PERMITTED);
}

/* A key that was wrapped under RSA does not come back as a secret that was carried: no pair is for both. */
static void transport(void)
{
	CK_ULONG bits = 2048, bytes = 32;
	CK_RSA_PKCS_OAEP_PARAMS oaep = {CKM_SHA256, CKG_MGF1_SHA256, CKZ_DATA_SPECIFIED, NULL, 0};
	CK_MECHANISM by_oaep = {CKM_RSA_PKCS_OAEP, &oaep, sizeof(oaep)};
	CK_MECHANISM generate = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0}, aes = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_MODULUS_BITS, &bits, sizeof(bits)}, {CKA_WRAP, &yes, 1}};
	CK_ATTRIBUTE private[] = {{CKA_UNWRAP, &yes, 1}, {CKA_SENSITIVE, &yes, 1}, {CKA_EXTRACTABLE, &no, 1},
				  {CKA_DECAPSULATE, &yes, 1}};
	CK_ATTRIBUTE carried[] = {{CKA_VALUE_LEN, &bytes, sizeof(bytes)}, {CKA_SENSITIVE, &yes, 1},
				  {CKA_EXTRACTABLE, &yes, 1}};
	CK_OBJECT_HANDLE key, there;
	OK(p11->C_GenerateKey(session, &aes, carried, 3, &key));
	for (CK_ULONG both = 0; both < 2; both++) {
		CK_RV wraps = both ? CKR_KEY_NOT_WRAPPABLE : CKR_OK;
		OK(p11->C_GenerateKeyPair(session, &generate, public, 2, private, 3 + both, &public_key,
					  &private_key));
		sealed_length = sizeof(sealed);
		EXPECT(p11->C_WrapKey(session, &by_oaep, public_key, key, sealed, &sealed_length), wraps);
		if (both) continue;
		EXPECT(p11->C_DecapsulateKey(session, &by_oaep, private_key, readable, 2, sealed,
					     sealed_length, &there),
		       CKR_KEY_FUNCTION_NOT_PERMITTED);
		EXPECT(p11->C_SetAttributeValue(session, private_key, private + 3, 1),
		       CKR_ATTRIBUTE_READ_ONLY);
	}
}

/* Keys that may not, of another type, made without being asked; a session that is closed. */
static void keys(CK_BYTE *params, CK_ULONG length)
{
	CK_ATTRIBUTE domain[] = {{CKA_EC_PARAMS, params, length}};
	CK_MECHANISM generate = {CKM_EC_KEY_PAIR_GEN, NULL, 0}, pkcs = {CKM_RSA_PKCS, NULL, 0};
	CK_ECDH1_DERIVE_PARAMS p = {CKD_NULL, 0, NULL, 0, NULL};
	CK_MECHANISM mechanism = {CKM_ECDH1_DERIVE, &p, sizeof(p)}, none = {CKM_ECDH1_DERIVE, NULL, 0};
	CK_MECHANISM_TYPE all[] = {CKM_RSA_PKCS, CKM_RSA_PKCS_OAEP, CKM_RSA_X_509, CKM_DH_PKCS_DERIVE,
				   CKM_X9_42_DH_DERIVE, CKM_ECDH1_DERIVE, CKM_ECDH1_COFACTOR_DERIVE};
	CK_SESSION_HANDLE other = open_session();
	CK_MECHANISM_INFO info;
	CK_OBJECT_HANDLE made;
	CK_ULONG room = sizeof(scratch);
	for (unsigned at = 0; at < sizeof(all) / sizeof(all[0]); at++) {
		OK(p11->C_GetMechanismInfo(0, all[at], &info));
		CHECK(info.flags & CKF_ENCAPSULATE && info.flags & CKF_DECAPSULATE);
	}
	OK(p11->C_GenerateKeyPair(session, &generate, domain, 1, NULL, 0, &public_key, &private_key));
	refuse(&mechanism, NULL, 0, CKR_KEY_FUNCTION_NOT_PERMITTED);
	EXPECT(p11->C_DecapsulateKey(session, &mechanism, private_key, NULL, 0, sealed, 65, &made),
	       CKR_KEY_FUNCTION_NOT_PERMITTED);
	pair(CKM_EC_KEY_PAIR_GEN, domain, 1, NULL, 0);
	refuse(&pkcs, NULL, 0, CKR_KEY_TYPE_INCONSISTENT);
	refuse(&none, NULL, 0, CKR_MECHANISM_PARAM_INVALID);
	CK_BYTE modulus[128], exponent[] = {1, 0, 1};
	CK_OBJECT_CLASS class = CKO_PUBLIC_KEY;
	CK_KEY_TYPE rsa_type = CKK_RSA;
	CK_ULONG bytes = 32;
	CK_ATTRIBUTE weak[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_KEY_TYPE, &rsa_type, sizeof(rsa_type)},
			       {CKA_MODULUS, modulus, 128}, {CKA_PUBLIC_EXPONENT, exponent, 3},
			       {CKA_ENCAPSULATE, &yes, 1}};
	CK_ATTRIBUTE says = {CKA_VALUE_LEN, &bytes, sizeof(bytes)};
	p.kdf = 4711;
	refuse(&mechanism, NULL, 0, CKR_MECHANISM_PARAM_INVALID);
	p.kdf = CKD_NULL;
	memset(modulus, 0xc5, sizeof(modulus));
	OK(p11->C_CreateObject(session, weak, 5, &public_key));
	refuse(&pkcs, &says, 1, CKR_KEY_SIZE_RANGE);
	OK(p11->C_CloseSession(other));
	EXPECT(p11->C_EncapsulateKey(other, &mechanism, public_key, NULL, 0, scratch, &room, &made),
	       CKR_SESSION_HANDLE_INVALID);
	EXPECT(p11->C_DecapsulateKey(other, &mechanism, private_key, NULL, 0, scratch, 65, &made),
	       CKR_SESSION_HANDLE_INVALID);
}

int main(void)
{
	CK_BYTE p256[] = {6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}, p521[] = {6, 5, 0x2b, 0x81, 4, 0, 0x23};
	CK_BYTE sect283k1[] = {6, 5, 0x2b, 0x81, 4, 0, 16}, x25519[] = {6, 3, 0x2b, 0x65, 0x6e};
	prime_length = strlen(digits) / 2;
	for (CK_ULONG at = 0; at < prime_length; at++) {
		unsigned byte;
		CHECK(sscanf(digits + 2 * at, "%2x", &byte) == 1);
		prime[at] = (CK_BYTE)byte;
		/* Half of the prime less 1. */
		order[at] = (CK_BYTE)(byte >> 1 | (at > 0 ? (prime[at - 1] & 1) << 7 : 0));
	}
	session = begin_as_user();
	rsa();
	curve(p256, sizeof(p256), CKM_EC_KEY_PAIR_GEN, CKM_ECDH1_DERIVE, 32, 65);
	curve(p521, sizeof(p521), CKM_EC_KEY_PAIR_GEN, CKM_ECDH1_COFACTOR_DERIVE, 66, 133);
	curve(sect283k1, sizeof(sect283k1), CKM_EC_KEY_PAIR_GEN, CKM_ECDH1_COFACTOR_DERIVE, 36, 73);
	curve(x25519, sizeof(x25519), CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKM_ECDH1_DERIVE, 32, 32);
	modulo(CKM_DH_PKCS_KEY_PAIR_GEN, CKM_DH_PKCS_DERIVE, 0);
	modulo(CKM_X9_42_DH_KEY_PAIR_GEN, CKM_X9_42_DH_DERIVE, 1);
	hidden(p256, sizeof(p256));
	transport();
	keys(p256, sizeof(p256));
	OK(p11->C_Finalize(NULL));
	return 0;
}
