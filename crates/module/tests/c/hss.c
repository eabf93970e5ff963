/* SPDX-License-Identifier: Apache-2.0 */
/* HSS: pairs are made in the token, sign as often as they may, and never leave it; what does not belong together is refused. */
#include "common.h"

enum { SHA256_M32_H5 = 5, SHA256_M32_H10, SHA256_M32_H20 = 8, SHA256_M24_H5 = 10, SHA256_M24_H25 = 14, SHAKE_M24_H5 = 20 };
enum { SHA256_N32_W1 = 1, SHA256_N32_W8 = 4, SHA256_N24_W4 = 7, SHA256_N24_W8, SHAKE_N24_W4 = 15 };

static CK_MECHANISM hss = {CKM_HSS, NULL, 0};
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE public_key, private_key;
static CK_BYTE signature[40000];

static CK_RV make(CK_ULONG levels, CK_ULONG *trees, CK_ULONG *chains, CK_ATTRIBUTE_TYPE but, CK_BBOOL is)
{
	CK_MECHANISM mechanism = {CKM_HSS_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE private[] = {{CKA_HSS_LEVELS, &levels, sizeof(levels)},
				  {CKA_HSS_LMS_TYPES, trees, levels * sizeof(*trees)},
				  {CKA_HSS_LMOTS_TYPES, chains, levels * sizeof(*chains)},
				  {CKA_TOKEN, &yes, 1},
				  {but, &is, 1}};
	if (but == CKA_TOKEN) private[3] = private[4];
	return p11->C_GenerateKeyPair(session, &mechanism, NULL, 0, private, but == CKA_SIGN || but == CKA_TOKEN ? 4 : 5,
				      &public_key, &private_key);
}

static CK_RV make_plain(CK_ULONG tree, CK_ULONG chain)
{
	return make(1, &tree, &chain, CKA_SIGN, CK_TRUE);
}

static CK_ULONG number_of(CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type)
{
	CK_ULONG number = 0;
	CK_ATTRIBUTE query = {type, &number, sizeof(number)};
	OK(p11->C_GetAttributeValue(session, key, &query, 1));
	return number;
}

static CK_RV sign(CK_ULONG *length)
{
	CK_RV rv = p11->C_SignInit(session, &hss, private_key);
	*length = sizeof(signature);
	return rv == CKR_OK ? p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, length) : rv;
}

static CK_RV verify(const char *message, CK_ULONG length)
{
	OK(p11->C_VerifyInit(session, &hss, public_key));
	return p11->C_Verify(session, (CK_BYTE *)message, strlen(message), signature, length);
}

/* What is asked for, or does not fit, uses nothing up. */
static void signs(CK_ULONG expected)
{
	CK_ULONG length = 0, left = number_of(private_key, CKA_HSS_KEYS_REMAINING);
	OK(p11->C_SignInit(session, &hss, private_key));
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, NULL, &length));
	CHECK(length == expected);
	length--;
	EXPECT(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length), CKR_BUFFER_TOO_SMALL);
	CHECK(number_of(private_key, CKA_HSS_KEYS_REMAINING) == left);
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	CHECK(length == expected && number_of(private_key, CKA_HSS_KEYS_REMAINING) == left - 1);
	OK(verify("message", length));
	EXPECT(verify("Message", length), CKR_SIGNATURE_INVALID);
	for (CK_ULONG at = 0; at < length; at += 211) {
		signature[at] ^= 1;
		EXPECT(verify("message", length), CKR_SIGNATURE_INVALID);
		signature[at] ^= 1;
	}
	/* A public key does not say what the trees below the first are. */
	CK_RV cut = number_of(public_key, CKA_HSS_LEVELS) == 1 ? CKR_SIGNATURE_LEN_RANGE : CKR_SIGNATURE_INVALID;
	EXPECT(verify("message", length - 1), cut);
	EXPECT(verify("message", 0), cut);
	OK(p11->C_SignInit(session, &hss, private_key));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"mess", 4));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"age", 3));
	OK(p11->C_SignFinal(session, signature, &length));
	OK(verify("message", length));
	CHECK(number_of(private_key, CKA_HSS_KEYS_REMAINING) == left - 2);
}

static void stays(void)
{
	CK_OBJECT_HANDLE other;
	CK_ATTRIBUTE changes[] = {{CKA_EXTRACTABLE, &yes, 1}, {CKA_COPYABLE, &yes, 1}, {CKA_SENSITIVE, &no, 1}};
	CK_ULONG more = 2000, length = sizeof(signature), bytes = 32;
	CK_ATTRIBUTE left = {CKA_HSS_KEYS_REMAINING, &more, sizeof(more)};
	CK_ATTRIBUTE value = {CKA_VALUE, signature, sizeof(signature)};
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, wrap = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_ATTRIBUTE secret[] = {{CKA_VALUE_LEN, &bytes, sizeof(bytes)}, {CKA_WRAP, &yes, 1}};
	EXPECT(p11->C_CopyObject(session, private_key, NULL, 0, &other), CKR_ACTION_PROHIBITED);
	for (int i = 0; i < 3; i++)
		CHECK(p11->C_SetAttributeValue(session, private_key, changes + i, 1) != CKR_OK);
	CHECK(p11->C_SetAttributeValue(session, private_key, &left, 1) != CKR_OK);
	EXPECT(p11->C_GetAttributeValue(session, private_key, &value, 1), CKR_ATTRIBUTE_SENSITIVE);
	OK(p11->C_GenerateKey(session, &generate, secret, 2, &other));
	EXPECT(p11->C_WrapKey(session, &wrap, other, private_key, signature, &length), CKR_KEY_UNEXTRACTABLE);
}

/* The public key again, from its value alone. */
static void travels(CK_ULONG length)
{
	CK_OBJECT_CLASS class = CKO_PUBLIC_KEY, private_class = CKO_PRIVATE_KEY;
	CK_KEY_TYPE type = CKK_HSS;
	CK_BYTE bytes[60], again[60];
	CK_MECHANISM derive = {CKM_PUB_KEY_FROM_PRIV_KEY, NULL, 0};
	CK_ATTRIBUTE value = {CKA_VALUE, bytes, sizeof(bytes)}, same = {CKA_VALUE, again, sizeof(again)};
	OK(p11->C_GetAttributeValue(session, public_key, &value, 1));
	OK(p11->C_DeriveKey(session, &derive, private_key, NULL, 0, &public_key));
	OK(p11->C_GetAttributeValue(session, public_key, &same, 1));
	CHECK(same.ulValueLen == value.ulValueLen && memcmp(bytes, again, same.ulValueLen) == 0);
	OK(verify("message", length));
	CK_ULONG levels = number_of(public_key, CKA_HSS_LEVELS), tree = number_of(public_key, CKA_HSS_LMS_TYPE);
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_KEY_TYPE, &type, sizeof(type)}, value,
				   {CKA_HSS_LEVELS, &levels, sizeof(levels)}, {CKA_HSS_LMS_TYPE, &tree, sizeof(tree)}};
	OK(p11->C_CreateObject(session, template, 5, &public_key));
	OK(verify("message", length));
	tree++;
	EXPECT(p11->C_CreateObject(session, template, 5, &public_key), CKR_TEMPLATE_INCONSISTENT);
	template[2].ulValueLen--;
	EXPECT(p11->C_CreateObject(session, template, 3, &public_key), CKR_ATTRIBUTE_VALUE_INVALID);
	template[0].pValue = &private_class;
	EXPECT(p11->C_CreateObject(session, template, 3, &public_key), CKR_TEMPLATE_INCONSISTENT);
}

static void refused(void)
{
	CK_ULONG trees[] = {SHA256_M24_H5, SHA256_M24_H5}, chains[] = {SHA256_N24_W4, SHA256_N24_W4};
	CK_ATTRIBUTE_TYPE must[] = {CKA_TOKEN, CKA_PRIVATE, CKA_SENSITIVE};
	for (int i = 0; i < 3; i++) EXPECT(make(2, trees, chains, must[i], CK_FALSE), CKR_TEMPLATE_INCONSISTENT);
	EXPECT(make(2, trees, chains, CKA_EXTRACTABLE, CK_TRUE), CKR_TEMPLATE_INCONSISTENT);
	EXPECT(make(2, trees, chains, CKA_COPYABLE, CK_TRUE), CKR_TEMPLATE_INCONSISTENT);
	EXPECT(make_plain(SHA256_M24_H5, SHA256_N32_W8), CKR_PARAMETER_SET_NOT_SUPPORTED);
	EXPECT(make_plain(SHA256_M32_H20, SHA256_N32_W8), CKR_PARAMETER_SET_NOT_SUPPORTED);
	EXPECT(make_plain(SHA256_M24_H25, SHA256_N24_W8), CKR_PARAMETER_SET_NOT_SUPPORTED);
	EXPECT(make_plain(0, 0), CKR_PARAMETER_SET_NOT_SUPPORTED);
	trees[1] = SHA256_M32_H5;
	chains[1] = SHA256_N32_W8;
	EXPECT(make(2, trees, chains, CKA_SIGN, CK_TRUE), CKR_TEMPLATE_INCONSISTENT);
	CK_MECHANISM mechanism = {CKM_HSS_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE token = {CKA_TOKEN, &yes, 1};
	EXPECT(p11->C_GenerateKeyPair(session, &mechanism, NULL, 0, &token, 1, &public_key, &private_key),
	       CKR_TEMPLATE_INCOMPLETE);
}

int main(void)
{
	CK_ULONG length, chains[] = {SHA256_N24_W4, SHA256_N24_W8}, trees[] = {SHA256_M24_H5, SHA256_M24_H5};
	session = begin_as_user();
	refused();
	OK(make(2, trees, chains, CKA_SIGN, CK_TRUE));
	CHECK(number_of(private_key, CKA_HSS_KEYS_REMAINING) == 1024);
	signs(4 + 12 + 24 * (1 + 51 + 5) + 48 + 12 + 24 * (1 + 26 + 5));
	stays();
	OK(sign(&length));
	travels(length);
	OK(make_plain(SHA256_M32_H10, SHA256_N32_W1));
	signs(4 + 12 + 32 * (1 + 265 + 10));
	/* More than 32 bits have. */
	CK_ULONG high[] = {SHA256_M32_H10, SHA256_M32_H10, SHA256_M32_H10, SHA256_M32_H5};
	CK_ULONG quick[] = {SHA256_N32_W1, SHA256_N32_W1, SHA256_N32_W1, SHA256_N32_W1};
	OK(make(4, high, quick, CKA_SIGN, CK_TRUE));
	CHECK(number_of(private_key, CKA_HSS_KEYS_REMAINING) == 0xffffffff);
	/* Until nothing is left. */
	OK(make_plain(SHAKE_M24_H5, SHAKE_N24_W4));
	for (int left = 31; left >= 0; left--) {
		OK(sign(&length));
		OK(verify("message", length));
		CHECK(number_of(private_key, CKA_HSS_KEYS_REMAINING) == (CK_ULONG)left);
	}
	EXPECT(sign(&length), CKR_KEY_EXHAUSTED);
	CHECK(number_of(private_key, CKA_HSS_KEYS_REMAINING) == 0);
	OK(p11->C_Finalize(NULL));
	return 0;
}
