/* SPDX-License-Identifier: Apache-2.0 */
/* SLH-DSA: pairs of every set are made, kept in the token, used in parts and with contexts, wrapped and opened again; what does not
 * belong together is refused. */
#include "common.h"

/* Bytes of a node and of a signature, in the order of the parameter sets (FIPS 205, table 2). */
static struct {
	CK_ULONG node, signature;
} sets[] = {{16, 7856},	 {16, 7856},  {16, 17088}, {16, 17088}, {24, 16224}, {24, 16224},
	    {24, 35664}, {24, 35664}, {32, 29792}, {32, 29792}, {32, 49856}, {32, 49856}};

static CK_MECHANISM plain = {CKM_SLH_DSA, NULL, 0};
static CK_OBJECT_CLASS private_class = CKO_PRIVATE_KEY, public_class = CKO_PUBLIC_KEY;
static CK_KEY_TYPE type = CKK_SLH_DSA;
static CK_OBJECT_HANDLE public_key, private_key;
static CK_SESSION_HANDLE session;
static CK_BYTE signature[49856];

static CK_RV make(CK_SLH_DSA_PARAMETER_SET_TYPE set, CK_BBOOL readable)
{
	CK_MECHANISM mechanism = {CKM_SLH_DSA_KEY_PAIR_GEN, NULL, 0};
	CK_BBOOL sensitive = !readable;
	CK_ATTRIBUTE public[] = {{CKA_PARAMETER_SET, &set, sizeof(set)}};
	CK_ATTRIBUTE private[] = {{CKA_TOKEN, &sensitive, 1}, {CKA_SENSITIVE, &sensitive, 1}, {CKA_EXTRACTABLE, &yes, 1}};
	return p11->C_GenerateKeyPair(session, &mechanism, public, 1, private, 3, &public_key, &private_key);
}

static CK_RV sign(CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, CK_ULONG *length)
{
	CK_RV rv = p11->C_SignInit(session, mechanism, key);
	*length = sizeof(signature);
	return rv == CKR_OK ? p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, length) : rv;
}

static CK_RV verify(CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, CK_ULONG length)
{
	CK_RV rv = p11->C_VerifyInit(session, mechanism, key);
	return rv == CKR_OK ? p11->C_Verify(session, (CK_BYTE *)"message", 7, signature, length) : rv;
}

static void signs(CK_OBJECT_HANDLE key, CK_ULONG expected)
{
	CK_BYTE bytes[256] = {7};
	CK_SIGN_ADDITIONAL_CONTEXT context = {CKH_DETERMINISTIC_REQUIRED, bytes, 255};
	CK_MECHANISM bound = {CKM_SLH_DSA, &context, sizeof(context)};
	CK_BYTE first[32];
	CK_ULONG length = 0;
	OK(p11->C_SignInit(session, &plain, key));
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, NULL, &length));
	CHECK(length == expected);
	length = expected - 1;
	EXPECT(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length), CKR_BUFFER_TOO_SMALL);
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	CHECK(length == expected);
	OK(verify(&plain, public_key, length));
	EXPECT(verify(&bound, public_key, length), CKR_SIGNATURE_INVALID);
	signature[length - 1] ^= 1;
	EXPECT(verify(&plain, public_key, length), CKR_SIGNATURE_INVALID);
	EXPECT(verify(&plain, public_key, length - 1), CKR_SIGNATURE_LEN_RANGE);
	EXPECT(verify(&plain, public_key, 0), CKR_SIGNATURE_LEN_RANGE);
	/* Deterministic, in one part and in several. */
	OK(sign(&bound, key, &length));
	memcpy(first, signature, sizeof(first));
	OK(p11->C_SignInit(session, &bound, key));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"mess", 4));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"age", 3));
	OK(p11->C_SignFinal(session, signature, &length));
	CHECK(memcmp(first, signature, sizeof(first)) == 0);
	/* How it was signed is all the same to who verifies it. */
	context.hedgeVariant = 99;
	EXPECT(p11->C_SignInit(session, &bound, key), CKR_MECHANISM_PARAM_INVALID);
	OK(p11->C_VerifyInit(session, &bound, public_key));
	OK(p11->C_VerifyUpdate(session, (CK_BYTE *)"message", 7));
	OK(p11->C_VerifyFinal(session, signature, length));
	context.ulContextLen = 254;
	EXPECT(verify(&bound, public_key, length), CKR_SIGNATURE_INVALID);
	context.hedgeVariant = CKH_HEDGE_REQUIRED;
	context.ulContextLen = 256;
	EXPECT(p11->C_SignInit(session, &bound, key), CKR_MECHANISM_PARAM_INVALID);
	EXPECT(p11->C_VerifyInit(session, &bound, public_key), CKR_MECHANISM_PARAM_INVALID);
	EXPECT(sign(&plain, public_key, &length), CKR_KEY_FUNCTION_NOT_PERMITTED);
	EXPECT(verify(&plain, key, length), CKR_KEY_FUNCTION_NOT_PERMITTED);
}

/* Leaves and comes back. */
static CK_OBJECT_HANDLE wrapped(CK_SLH_DSA_PARAMETER_SET_TYPE set)
{
	CK_BYTE form[200];
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, wrap = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_ULONG bytes = 32, length = sizeof(form);
	CK_SLH_DSA_PARAMETER_SET_TYPE other = set % 12 + 1;
	CK_ATTRIBUTE secret[] = {{CKA_VALUE_LEN, &bytes, sizeof(bytes)}, {CKA_WRAP, &yes, 1}, {CKA_UNWRAP, &yes, 1},
				 {CKA_ENCRYPT, &no, 1}, {CKA_DECRYPT, &no, 1}};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &private_class, sizeof(private_class)}, {CKA_KEY_TYPE, &type, sizeof(type)},
				   {CKA_PARAMETER_SET, &other, sizeof(other)}};
	CK_OBJECT_HANDLE by, opened;
	OK(p11->C_GenerateKey(session, &generate, secret, 5, &by));
	OK(p11->C_WrapKey(session, &wrap, by, private_key, form, &length));
	EXPECT(p11->C_UnwrapKey(session, &wrap, by, form, length, template, 3, &opened), CKR_TEMPLATE_INCONSISTENT);
	OK(p11->C_UnwrapKey(session, &wrap, by, form, length, template, 2, &opened));
	return opened;
}

/* What is brought: all of it is there, and its root is that of its seeds. */
static void brought(CK_SLH_DSA_PARAMETER_SET_TYPE set, CK_ULONG node)
{
	CK_BYTE private[128], public[64];
	CK_ATTRIBUTE value = {CKA_VALUE, private, sizeof(private)}, shown = {CKA_VALUE, public, sizeof(public)};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &private_class, sizeof(private_class)}, {CKA_KEY_TYPE, &type, sizeof(type)},
				   {CKA_PARAMETER_SET, &set, sizeof(set)}, {CKA_VALUE, private, 4 * node}};
	CK_OBJECT_HANDLE made;
	OK(make(set, CK_TRUE));
	OK(p11->C_GetAttributeValue(session, private_key, &value, 1));
	OK(p11->C_GetAttributeValue(session, public_key, &shown, 1));
	CHECK(value.ulValueLen == 4 * node && shown.ulValueLen == 2 * node);
	CHECK(memcmp(private + 2 * node, public, 2 * node) == 0);
	OK(p11->C_CreateObject(session, template, 4, &made));
	/* The secret seed, the public one, the root. */
	for (CK_ULONG at = 0; at < 4 * node; at += at == 0 ? 2 * node : node) {
		private[at] ^= 1;
		EXPECT(p11->C_CreateObject(session, template, 4, &made), CKR_ATTRIBUTE_VALUE_INVALID);
		private[at] ^= 1;
	}
	for (int at = 0; at < 2; at++) {
		template[3].ulValueLen--;
		EXPECT(p11->C_CreateObject(session, template, 4, &made), CKR_ATTRIBUTE_VALUE_INVALID);
		EXPECT(p11->C_CreateObject(session, template, 3, &made), CKR_TEMPLATE_INCOMPLETE);
		template[0].pValue = &public_class;
		template[3] = (CK_ATTRIBUTE){CKA_VALUE, public, 2 * node};
	}
	OK(p11->C_CreateObject(session, template, 4, &made));
}

int main(void)
{
	session = begin_as_user();
	EXPECT(make(0, CK_FALSE), CKR_PARAMETER_SET_NOT_SUPPORTED);
	EXPECT(make(13, CK_FALSE), CKR_PARAMETER_SET_NOT_SUPPORTED);
	for (CK_ULONG at = 0; at < 12; at++) {
		CK_ATTRIBUTE query = {CKA_CLASS, &private_class, sizeof(private_class)};
		CK_ULONG count;
		OK(make(at + 1, CK_FALSE));
		/* All that are fast, and of the slow ones the smallest by either hash function. */
		if (at < 2 || at & 2) signs(private_key, sets[at].signature);
		private_key = wrapped(at + 1);
		CHECK(sign(&plain, private_key, &count) == CKR_OK && verify(&plain, public_key, count) == CKR_OK);
		/* As it comes out of the store. */
		OK(p11->C_Logout(session));
		OK(p11->C_Login(session, CKU_USER, user_pin, 4));
		OK(p11->C_FindObjectsInit(session, &query, 1));
		OK(p11->C_FindObjects(session, &private_key, 1, &count));
		OK(p11->C_FindObjectsFinal(session));
		CHECK(count == 1);
		OK(sign(&plain, private_key, &count));
		OK(verify(&plain, public_key, count));
		OK(p11->C_DestroyObject(session, private_key));
		brought(at + 1, sets[at].node);
		OK(p11->C_CloseSession(session));
		session = user_session();
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
