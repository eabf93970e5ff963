/* SPDX-License-Identifier: Apache-2.0 */
/* XEdDSA: keys of X25519 sign or agree, and both where their templates say so; parameters, parts, and what is no signature. */
#include "common.h"

static CK_BYTE x25519[] = {0x06, 0x03, 0x2b, 0x65, 0x6e}, p256[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7};
static CK_BYTE message[] = "message";
static CK_OBJECT_HANDLE public_key, private_key;
static CK_SESSION_HANDLE session;

static void make(CK_MECHANISM_TYPE type, CK_BYTE *curve, CK_ULONG length, CK_ATTRIBUTE *said, CK_ULONG count)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_ATTRIBUTE params = {CKA_EC_PARAMS, curve, length};
	OK(p11->C_GenerateKeyPair(session, &mechanism, &params, 1, said, count, &public_key, &private_key));
}

static CK_RV agree(void)
{
	CK_BYTE point[34];
	CK_ATTRIBUTE shown = {CKA_EC_POINT, point, sizeof point};
	CK_ECDH1_DERIVE_PARAMS params = {CKD_NULL, 0, NULL, sizeof point, point};
	CK_MECHANISM mechanism = {CKM_ECDH1_DERIVE, &params, sizeof params};
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type}};
	CK_OBJECT_HANDLE secret;
	OK(p11->C_GetAttributeValue(session, public_key, &shown, 1));
	return p11->C_DeriveKey(session, &mechanism, private_key, template, 2, &secret);
}

static CK_RV check(CK_MECHANISM *mechanism, CK_BYTE *signature, CK_ULONG length)
{
	OK(p11->C_VerifyInit(session, mechanism, public_key));
	return p11->C_Verify(session, message, 7, signature, length);
}

static void sign(CK_MECHANISM_TYPE hash)
{
	CK_XEDDSA_PARAMS params = {hash};
	CK_MECHANISM mechanism = {CKM_XEDDSA, &params, sizeof params};
	CK_BYTE signature[65], other[64];
	CK_ULONG length = 0, bit;
	OK(p11->C_SignInit(session, &mechanism, private_key));
	OK(p11->C_Sign(session, message, 7, NULL, &length));
	CHECK(length == 64);
	length = 63;
	EXPECT(p11->C_Sign(session, message, 7, signature, &length), CKR_BUFFER_TOO_SMALL);
	length = sizeof signature;
	OK(p11->C_Sign(session, message, 7, signature, &length));
	CHECK(length == 64);
	OK(check(&mechanism, signature, 64));
	for (bit = 0; bit < 512; bit++) {
		signature[bit / 8] ^= 1 << bit % 8;
		EXPECT(check(&mechanism, signature, 64), CKR_SIGNATURE_INVALID);
		signature[bit / 8] ^= 1 << bit % 8;
	}
	EXPECT(check(&mechanism, signature, 63), CKR_SIGNATURE_LEN_RANGE);
	EXPECT(check(&mechanism, signature, 65), CKR_SIGNATURE_LEN_RANGE);
	OK(p11->C_SignInit(session, &mechanism, private_key));
	OK(p11->C_SignUpdate(session, message, 3));
	OK(p11->C_SignUpdate(session, message + 3, 4));
	OK(p11->C_SignFinal(session, other, &length));
	CHECK(length == 64 && memcmp(signature, other, 64) != 0);
	OK(p11->C_VerifyInit(session, &mechanism, public_key));
	OK(p11->C_VerifyUpdate(session, message, 6));
	OK(p11->C_VerifyUpdate(session, message + 6, 1));
	OK(p11->C_VerifyFinal(session, other, 64));
}

static void refuse_params(void)
{
	CK_ULONG hashes[] = {CKM_SHA_1, CKM_SHA384, 0, ~0UL}, at;
	CK_XEDDSA_PARAMS params = {CKM_SHA512};
	CK_MECHANISM mechanism = {CKM_XEDDSA, NULL, 0};
	EXPECT(p11->C_SignInit(session, &mechanism, private_key), CKR_MECHANISM_PARAM_INVALID);
	mechanism.pParameter = &params;
	mechanism.ulParameterLen = sizeof params - 1;
	EXPECT(p11->C_SignInit(session, &mechanism, private_key), CKR_MECHANISM_PARAM_INVALID);
	mechanism.ulParameterLen = sizeof params;
	for (at = 0; at < sizeof hashes / sizeof *hashes; at++) {
		params.hash = hashes[at];
		EXPECT(p11->C_SignInit(session, &mechanism, private_key), CKR_MECHANISM_PARAM_INVALID);
		EXPECT(p11->C_VerifyInit(session, &mechanism, public_key), CKR_MECHANISM_PARAM_INVALID);
	}
}

/* A bare form does not say that its key only agrees: none comes back from it that signs. */
static void arrive(CK_MECHANISM *signature)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, wrap = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
	CK_KEY_TYPE type = CKK_EC_MONTGOMERY;
	CK_BYTE wrapped[256];
	CK_ULONG aes = 32, length = sizeof wrapped;
	CK_ATTRIBUTE transport[] = {{CKA_VALUE_LEN, &aes, sizeof aes}, {CKA_WRAP, &yes, 1}, {CKA_UNWRAP, &yes, 1}};
	CK_ATTRIBUTE extractable = {CKA_EXTRACTABLE, &yes, 1};
	CK_ATTRIBUTE arriving[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type}, {CKA_SIGN, &yes, 1}};
	CK_OBJECT_HANDLE by;
	make(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, x25519, sizeof x25519, &extractable, 1);
	OK(p11->C_GenerateKey(session, &generate, transport, 3, &by));
	OK(p11->C_WrapKey(session, &wrap, by, private_key, wrapped, &length));
	EXPECT(p11->C_UnwrapKey(session, &wrap, by, wrapped, length, arriving, 3, &private_key), CKR_TEMPLATE_INCONSISTENT);
	OK(p11->C_UnwrapKey(session, &wrap, by, wrapped, length, arriving, 2, &private_key));
	OK(agree());
	EXPECT(p11->C_SignInit(session, signature, private_key), CKR_KEY_FUNCTION_NOT_PERMITTED);
	arriving[2] = (CK_ATTRIBUTE){CKA_DERIVE, &no, 1};
	OK(p11->C_UnwrapKey(session, &wrap, by, wrapped, length, arriving, 3, &private_key));
	EXPECT(p11->C_SignInit(session, signature, private_key), CKR_KEY_FUNCTION_NOT_PERMITTED);
}

int main(void)
{
	CK_ULONG hashes[] = {CKM_SHA512, CKM_SHA256, CKM_SHA3_256, CKM_SHA3_512, CKM_BLAKE2B_256, CKM_BLAKE2B_512}, at;
	CK_ATTRIBUTE both[] = {{CKA_SIGN, &yes, 1}, {CKA_DERIVE, &yes, 1}};
	CK_XEDDSA_PARAMS params = {CKM_SHA512};
	CK_MECHANISM mechanism = {CKM_XEDDSA, &params, sizeof params};
	CK_MECHANISM_INFO info;
	session = begin_as_user();
	OK(p11->C_GetMechanismInfo(0, CKM_XEDDSA, &info));
	CHECK(info.ulMinKeySize == 255 && info.ulMaxKeySize == 255);
	CHECK((info.flags & (CKF_SIGN | CKF_VERIFY)) == (CKF_SIGN | CKF_VERIFY));
	make(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, x25519, sizeof x25519, both, 1);
	for (at = 0; at < sizeof hashes / sizeof *hashes; at++) sign(hashes[at]);
	refuse_params();
	EXPECT(agree(), CKR_KEY_FUNCTION_NOT_PERMITTED);
	make(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, x25519, sizeof x25519, NULL, 0);
	OK(agree());
	EXPECT(p11->C_SignInit(session, &mechanism, private_key), CKR_KEY_FUNCTION_NOT_PERMITTED);
	make(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, x25519, sizeof x25519, both, 2);
	OK(agree());
	sign(CKM_SHA512);
	arrive(&mechanism);
	make(CKM_EC_KEY_PAIR_GEN, p256, sizeof p256, both, 1);
	EXPECT(p11->C_SignInit(session, &mechanism, private_key), CKR_KEY_TYPE_INCONSISTENT);
	OK(p11->C_Finalize(NULL));
	return 0;
}
