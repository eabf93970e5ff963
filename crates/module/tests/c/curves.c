/* SPDX-License-Identifier: Apache-2.0 */
/* Curves that only OpenSSL has: keys on them are made, used, and kept in the token. */
#include "common.h"

static CK_BYTE brainpool[] = {0x06, 0x09, 0x2b, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0b};
static CK_BYTE weak[] = {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x1e};
static CK_BYTE twisted[] = "\x13\x0f" "brainpoolP320t1";
static CK_BYTE binary[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x00, 0x14};
static CK_BYTE ed448[] = {0x06, 0x03, 0x2b, 0x65, 0x71};
static CK_BYTE x448[] = {0x06, 0x03, 0x2b, 0x65, 0x6f};
static CK_OBJECT_HANDLE public_key, private_key;

static void make(CK_SESSION_HANDLE session, CK_MECHANISM_TYPE type, CK_BYTE *curve, CK_ULONG length)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, curve, length}, {CKA_TOKEN, &yes, 1}};
	CK_ATTRIBUTE private[] = {{CKA_TOKEN, &yes, 1}, {CKA_SENSITIVE, &yes, 1},
				  {CKA_EXTRACTABLE, &yes, 1}};
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 2, private, 3, &public_key,
				  &private_key));
}

static void sign(CK_SESSION_HANDLE session, CK_MECHANISM_TYPE type, CK_ULONG expected)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_BYTE signature[200];
	CK_ULONG length = sizeof(signature);
	OK(p11->C_SignInit(session, &mechanism, private_key));
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	CHECK(length == expected);
	OK(p11->C_VerifyInit(session, &mechanism, public_key));
	OK(p11->C_Verify(session, (CK_BYTE *)"message", 7, signature, length));
	signature[9] ^= 1;
	OK(p11->C_VerifyInit(session, &mechanism, public_key));
	EXPECT(p11->C_Verify(session, (CK_BYTE *)"message", 7, signature, length),
	       CKR_SIGNATURE_INVALID);
}

/* Agrees with itself. */
static void agree(CK_SESSION_HANDLE session, CK_ULONG expected)
{
	CK_BYTE point[200];
	CK_ATTRIBUTE shown = {CKA_EC_POINT, point, sizeof(point)};
	CK_ECDH1_DERIVE_PARAMS params = {CKD_NULL, 0, NULL, 0, point};
	CK_MECHANISM mechanism = {CKM_ECDH1_DERIVE, &params, sizeof(params)};
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)},
				   {CKA_KEY_TYPE, &type, sizeof(type)}};
	CK_ULONG length = 0;
	CK_ATTRIBUTE value = {CKA_VALUE_LEN, &length, sizeof(length)};
	CK_OBJECT_HANDLE secret;
	OK(p11->C_GetAttributeValue(session, public_key, &shown, 1));
	params.ulPublicDataLen = shown.ulValueLen;
	OK(p11->C_DeriveKey(session, &mechanism, private_key, template, 2, &secret));
	OK(p11->C_GetAttributeValue(session, secret, &value, 1));
	CHECK(length == expected);
	memset(point + 2, 0, sizeof(point) - 2);
	EXPECT(p11->C_DeriveKey(session, &mechanism, private_key, template, 2, &secret),
	       CKR_MECHANISM_PARAM_INVALID);
}

int main(void)
{
	CK_SESSION_HANDLE session;
	CK_MECHANISM mechanism = {CKM_EC_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE params = {CKA_EC_PARAMS, weak, sizeof(weak)}, signs = {CKA_SIGN, &yes, 1};
	CK_XEDDSA_PARAMS hash = {CKM_SHA512};
	CK_MECHANISM xeddsa = {CKM_XEDDSA, &hash, sizeof(hash)};
	session = begin_as_user();
	make(session, CKM_EC_EDWARDS_KEY_PAIR_GEN, ed448, sizeof(ed448));
	sign(session, CKM_EDDSA, 114);
	make(session, CKM_EC_KEY_PAIR_GEN, brainpool, sizeof(brainpool));
	sign(session, CKM_ECDSA_SHA384, 96);
	agree(session, 48);
	make(session, CKM_EC_KEY_PAIR_GEN, twisted, sizeof(twisted) - 1);
	sign(session, CKM_ECDSA_SHA256, 80);
	agree(session, 40);
	/* Whose scalars are shorter than its coordinates. */
	make(session, CKM_EC_KEY_PAIR_GEN, binary, sizeof(binary));
	sign(session, CKM_ECDSA_SHA512, 106);
	agree(session, 54);
	EXPECT(p11->C_GenerateKeyPair(session, &mechanism, &params, 1, NULL, 0, &public_key,
				      &private_key),
	       CKR_ATTRIBUTE_VALUE_INVALID);
	make(session, CKM_EC_MONTGOMERY_KEY_PAIR_GEN, x448, sizeof(x448));
	agree(session, 56);
	/* XEdDSA is there for X25519 only. */
	mechanism.mechanism = CKM_EC_MONTGOMERY_KEY_PAIR_GEN;
	params.pValue = x448;
	params.ulValueLen = sizeof(x448);
	OK(p11->C_GenerateKeyPair(session, &mechanism, &params, 1, &signs, 1, &public_key,
				  &private_key));
	EXPECT(p11->C_SignInit(session, &xeddsa, private_key), CKR_KEY_SIZE_RANGE);
	EXPECT(p11->C_VerifyInit(session, &xeddsa, public_key), CKR_KEY_SIZE_RANGE);
	OK(p11->C_Finalize(NULL));
	return 0;
}
