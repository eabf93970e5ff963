/* SPDX-License-Identifier: Apache-2.0 */
/* ML-DSA: pairs are made, kept in the token, used in parts and with a context, wrapped and opened again. */
#include "common.h"

static struct {
	CK_ML_DSA_PARAMETER_SET_TYPE set;
	CK_ULONG public, private, signature;
} sets[] = {{CKP_ML_DSA_44, 1312, 2560, 2420},
	    {CKP_ML_DSA_65, 1952, 4032, 3309},
	    {CKP_ML_DSA_87, 2592, 4896, 4627}};

static CK_OBJECT_HANDLE public_key, private_key;

static void make(CK_SESSION_HANDLE session, CK_ML_DSA_PARAMETER_SET_TYPE set)
{
	CK_MECHANISM mechanism = {CKM_ML_DSA_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_PARAMETER_SET, &set, sizeof(set)}, {CKA_TOKEN, &yes, 1}};
	CK_ATTRIBUTE private[] = {{CKA_TOKEN, &yes, 1}, {CKA_SENSITIVE, &yes, 1},
				  {CKA_EXTRACTABLE, &yes, 1}};
	EXPECT(p11->C_GenerateKeyPair(session, &mechanism, public + 1, 1, private, 3, &public_key,
				      &private_key),
	       CKR_TEMPLATE_INCOMPLETE);
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 2, private, 3, &public_key,
				  &private_key));
}

static CK_ULONG length_of(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type)
{
	CK_ATTRIBUTE attribute = {type, NULL, 0};
	OK(p11->C_GetAttributeValue(session, key, &attribute, 1));
	return attribute.ulValueLen;
}

static void sign(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key, CK_ULONG expected)
{
	static CK_BYTE signature[5000];
	CK_SIGN_ADDITIONAL_CONTEXT context = {CKH_HEDGE_REQUIRED, (CK_BYTE *)"context", 7};
	CK_MECHANISM plain = {CKM_ML_DSA, NULL, 0};
	CK_MECHANISM bound = {CKM_ML_DSA, &context, sizeof(context)};
	CK_ULONG length = 0;
	OK(p11->C_SignInit(session, &plain, key));
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, NULL, &length));
	CHECK(length == expected);
	length = 100;
	EXPECT(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length),
	       CKR_BUFFER_TOO_SMALL);
	length = sizeof(signature);
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	CHECK(length == expected);
	OK(p11->C_VerifyInit(session, &plain, public_key));
	OK(p11->C_Verify(session, (CK_BYTE *)"message", 7, signature, length));
	/* Of another context it is none. */
	OK(p11->C_VerifyInit(session, &bound, public_key));
	EXPECT(p11->C_Verify(session, (CK_BYTE *)"message", 7, signature, length),
	       CKR_SIGNATURE_INVALID);
	OK(p11->C_SignInit(session, &bound, key));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"mess", 4));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"age", 3));
	length = sizeof(signature);
	OK(p11->C_SignFinal(session, signature, &length));
	OK(p11->C_VerifyInit(session, &bound, public_key));
	OK(p11->C_VerifyUpdate(session, (CK_BYTE *)"message", 7));
	OK(p11->C_VerifyFinal(session, signature, length));
	OK(p11->C_VerifyInit(session, &bound, public_key));
	EXPECT(p11->C_Verify(session, (CK_BYTE *)"message", 7, signature, length - 1),
	       CKR_SIGNATURE_LEN_RANGE);
	context.hedgeVariant = 99;
	EXPECT(p11->C_SignInit(session, &bound, key), CKR_MECHANISM_PARAM_INVALID);
}

/* Leaves and comes back, without its seed being readable on the way. */
static CK_OBJECT_HANDLE wrapped(CK_SESSION_HANDLE session)
{
	static CK_BYTE form[6000];
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_MECHANISM wrap = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_ULONG bytes = 32, length = sizeof(form);
	CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
	CK_KEY_TYPE type = CKK_ML_DSA;
	CK_ATTRIBUTE secret[] = {{CKA_VALUE_LEN, &bytes, sizeof(bytes)}, {CKA_WRAP, &yes, 1},
				 {CKA_UNWRAP, &yes, 1}, {CKA_ENCRYPT, &no, 1},
				 {CKA_DECRYPT, &no, 1}};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)},
				   {CKA_KEY_TYPE, &type, sizeof(type)}};
	CK_OBJECT_HANDLE by, opened;
	OK(p11->C_GenerateKey(session, &generate, secret, 5, &by));
	OK(p11->C_WrapKey(session, &wrap, by, private_key, form, &length));
	OK(p11->C_UnwrapKey(session, &wrap, by, form, length, template, 2, &opened));
	return opened;
}

static CK_OBJECT_HANDLE found(CK_SESSION_HANDLE session, CK_ML_DSA_PARAMETER_SET_TYPE set)
{
	CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
	CK_ATTRIBUTE query[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1},
				{CKA_PARAMETER_SET, &set, sizeof(set)}};
	CK_OBJECT_HANDLE key;
	CK_ULONG count;
	OK(p11->C_FindObjectsInit(session, query, 3));
	OK(p11->C_FindObjects(session, &key, 1, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count == 1);
	return key;
}

/* The error is of a parameter set, and not of a curve. */
static void unknown_set(CK_SESSION_HANDLE session)
{
	static CK_BYTE value[1952];
	CK_OBJECT_CLASS class = CKO_PUBLIC_KEY;
	CK_ML_DSA_PARAMETER_SET_TYPE set = 4;
	for (CK_KEY_TYPE type = CKK_ML_KEM; type <= CKK_ML_DSA; type++) {
		CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_KEY_TYPE, &type, sizeof(type)},
					   {CKA_PARAMETER_SET, &set, sizeof(set)}, {CKA_VALUE, value, sizeof(value)}};
		EXPECT(p11->C_CreateObject(session, template, 4, &public_key), CKR_PARAMETER_SET_NOT_SUPPORTED);
	}
}

int main(void)
{
	CK_SESSION_HANDLE session;
	CK_BYTE seed[32];
	CK_ATTRIBUTE hidden = {CKA_SEED, seed, sizeof(seed)};
	session = begin_as_user();
	unknown_set(session);
	for (int at = 0; at < 3; at++) {
		make(session, sets[at].set);
		CHECK(length_of(session, public_key, CKA_VALUE) == sets[at].public);
		EXPECT(p11->C_GetAttributeValue(session, private_key, &hidden, 1),
		       CKR_ATTRIBUTE_SENSITIVE);
		sign(session, private_key, sets[at].signature);
		/* As it comes out of the store. */
		OK(p11->C_Logout(session));
		OK(p11->C_Login(session, CKU_USER, user_pin, 4));
		private_key = found(session, sets[at].set);
		sign(session, private_key, sets[at].signature);
		sign(session, wrapped(session), sets[at].signature);
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
