/* SPDX-License-Identifier: Apache-2.0 */
/* XMSS and XMSS^MT: pairs are made in the token, sign as often as they may, and never leave it; what does not belong together is
 * refused. */
#include "common.h"

enum { SHA2_10_256 = 1, SHA2_20_256 = 3, SHA2_10_512, SHAKE_10_256 = 7, SHA2_10_192 = 13, SHAKE256_10_256 = 16, LAST = 21 };
enum { SHA2_20_4_256 = 2, SHA2_40_2_256, SHA2_60_3_256 = 6, SHAKE256_60_12_192 = 0x38, LAST_MT = 0x38 };

static const CK_MECHANISM_TYPE pairs[] = {CKM_XMSS_KEY_PAIR_GEN, CKM_XMSSMT_KEY_PAIR_GEN};
static const CK_KEY_TYPE types[] = {CKK_XMSS, CKK_XMSSMT};
static CK_MECHANISM mechanisms[] = {{CKM_XMSS, NULL, 0}, {CKM_XMSSMT, NULL, 0}};
/* Which of them. */
static int mt;

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE public_key, private_key;
static CK_BYTE signature[40000];

static CK_RV make(CK_ULONG set, CK_ATTRIBUTE_TYPE but, CK_BBOOL is)
{
	CK_MECHANISM mechanism = {pairs[mt], NULL, 0};
	CK_ATTRIBUTE public = {CKA_PARAMETER_SET, &set, sizeof(set)};
	CK_ATTRIBUTE private[] = {{CKA_TOKEN, &yes, 1}, {but, &is, 1}};
	if (but == CKA_TOKEN) private[0] = private[1];
	return p11->C_GenerateKeyPair(session, &mechanism, &public, 1, private, but == CKA_TOKEN ? 1 : 2, &public_key, &private_key);
}

static CK_ULONG number_of(CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type)
{
	CK_ULONG number = 0;
	CK_ATTRIBUTE query = {type, &number, sizeof(number)};
	OK(p11->C_GetAttributeValue(session, key, &query, 1));
	return number;
}

static CK_ULONG left(void)
{
	return number_of(private_key, CKA_HSS_KEYS_REMAINING);
}

/* As it is told. */
static CK_ULONG at_most(CK_ULONG number)
{
	return number > 0xffffffff ? 0xffffffff : number;
}

static CK_RV sign(CK_ULONG *length)
{
	CK_RV rv = p11->C_SignInit(session, &mechanisms[mt], private_key);
	*length = sizeof(signature);
	return rv == CKR_OK ? p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, length) : rv;
}

static CK_RV verify(const char *message, CK_ULONG length)
{
	OK(p11->C_VerifyInit(session, &mechanisms[mt], public_key));
	return p11->C_Verify(session, (CK_BYTE *)message, strlen(message), signature, length);
}

/* What is asked for, or does not fit, uses nothing up. */
static void signs(CK_ULONG set, CK_ULONG all, CK_ULONG expected)
{
	CK_ULONG length = 0;
	OK(make(set, CKA_SIGN, CK_TRUE));
	CHECK(left() == at_most(all) && number_of(private_key, CKA_PARAMETER_SET) == set && number_of(public_key, CKA_PARAMETER_SET) == set);
	OK(p11->C_SignInit(session, &mechanisms[mt], private_key));
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, NULL, &length));
	CHECK(length == expected);
	length--;
	EXPECT(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length), CKR_BUFFER_TOO_SMALL);
	CHECK(left() == at_most(all));
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	CHECK(length == expected && left() == at_most(all - 1));
	OK(verify("message", length));
	EXPECT(verify("Message", length), CKR_SIGNATURE_INVALID);
	for (CK_ULONG at = 0; at < length; at += length / 20) {
		signature[at] ^= 1;
		EXPECT(verify("message", length), CKR_SIGNATURE_INVALID);
		signature[at] ^= 1;
	}
	EXPECT(verify("message", length - 1), CKR_SIGNATURE_LEN_RANGE);
	EXPECT(verify("message", 0), CKR_SIGNATURE_LEN_RANGE);
	OK(p11->C_SignInit(session, &mechanisms[mt], private_key));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"mess", 4));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"age", 3));
	OK(p11->C_SignFinal(session, signature, &length));
	OK(verify("message", length));
	CHECK(left() == at_most(all - 2));
}

static void stays(void)
{
	CK_OBJECT_HANDLE other;
	CK_ATTRIBUTE changes[] = {{CKA_EXTRACTABLE, &yes, 1}, {CKA_COPYABLE, &yes, 1}, {CKA_SENSITIVE, &no, 1}};
	CK_ULONG more = ~0UL >> 1, length = sizeof(signature), bytes = 32;
	CK_ATTRIBUTE remaining = {CKA_HSS_KEYS_REMAINING, &more, sizeof(more)};
	CK_ATTRIBUTE value = {CKA_VALUE, signature, sizeof(signature)};
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, wrap = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_ATTRIBUTE secret[] = {{CKA_VALUE_LEN, &bytes, sizeof(bytes)}, {CKA_WRAP, &yes, 1}};
	EXPECT(p11->C_CopyObject(session, private_key, NULL, 0, &other), CKR_ACTION_PROHIBITED);
	for (int i = 0; i < 3; i++)
		CHECK(p11->C_SetAttributeValue(session, private_key, changes + i, 1) != CKR_OK);
	CHECK(p11->C_SetAttributeValue(session, private_key, &remaining, 1) != CKR_OK);
	EXPECT(p11->C_GetAttributeValue(session, private_key, &value, 1), CKR_ATTRIBUTE_SENSITIVE);
	OK(p11->C_GenerateKey(session, &generate, secret, 2, &other));
	EXPECT(p11->C_WrapKey(session, &wrap, other, private_key, signature, &length), CKR_KEY_UNEXTRACTABLE);
}

/* The public key again: of the private one, and from its value alone. */
static void travels(CK_ULONG length)
{
	CK_OBJECT_CLASS class = CKO_PUBLIC_KEY, private_class = CKO_PRIVATE_KEY;
	CK_KEY_TYPE type = types[mt], other = types[!mt];
	CK_MECHANISM derive = {CKM_PUB_KEY_FROM_PRIV_KEY, NULL, 0};
	CK_BYTE bytes[132];
	CK_ATTRIBUTE value = {CKA_VALUE, bytes, sizeof(bytes)};
	OK(p11->C_DeriveKey(session, &derive, private_key, NULL, 0, &public_key));
	OK(verify("message", length));
	OK(p11->C_GetAttributeValue(session, public_key, &value, 1));
	CK_ULONG set = number_of(public_key, CKA_PARAMETER_SET);
	CHECK(bytes[3] == set && value.ulValueLen % 8 == 4);
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_KEY_TYPE, &type, sizeof(type)}, value,
				   {CKA_PARAMETER_SET, &set, sizeof(set)}};
	OK(p11->C_CreateObject(session, template, 4, &public_key));
	OK(verify("message", length));
	CK_OBJECT_HANDLE good = public_key;
	EXPECT(p11->C_VerifyInit(session, &mechanisms[!mt], good), CKR_KEY_TYPE_INCONSISTENT);
	set++;
	EXPECT(p11->C_CreateObject(session, template, 4, &public_key), CKR_TEMPLATE_INCONSISTENT);
	template[2].ulValueLen--;
	EXPECT(p11->C_CreateObject(session, template, 3, &public_key), CKR_ATTRIBUTE_VALUE_INVALID);
	template[2].ulValueLen++;
	bytes[3] = 0;
	EXPECT(p11->C_CreateObject(session, template, 3, &public_key), CKR_ATTRIBUTE_VALUE_INVALID);
	bytes[3] = (CK_BYTE)(set - 1);
	EXPECT(p11->C_CreateObject(session, template, 2, &public_key), CKR_TEMPLATE_INCOMPLETE);
	template[0].pValue = &private_class;
	EXPECT(p11->C_CreateObject(session, template, 3, &public_key), CKR_TEMPLATE_INCONSISTENT);
	template[1].pValue = &other;
	EXPECT(p11->C_CreateObject(session, template, 3, &public_key), CKR_TEMPLATE_INCONSISTENT);
}

static void refused(CK_ULONG good, const CK_ULONG *sets, int count)
{
	CK_ATTRIBUTE_TYPE must[] = {CKA_TOKEN, CKA_PRIVATE, CKA_SENSITIVE};
	for (int i = 0; i < 3; i++) EXPECT(make(good, must[i], CK_FALSE), CKR_TEMPLATE_INCONSISTENT);
	EXPECT(make(good, CKA_EXTRACTABLE, CK_TRUE), CKR_TEMPLATE_INCONSISTENT);
	EXPECT(make(good, CKA_COPYABLE, CK_TRUE), CKR_TEMPLATE_INCONSISTENT);
	for (int i = 0; i < count; i++) EXPECT(make(sets[i], CKA_SIGN, CK_TRUE), CKR_PARAMETER_SET_NOT_SUPPORTED);
	CK_MECHANISM mechanism = {pairs[mt], NULL, 0};
	CK_ATTRIBUTE token = {CKA_TOKEN, &yes, 1};
	EXPECT(p11->C_GenerateKeyPair(session, &mechanism, NULL, 0, &token, 1, &public_key, &private_key), CKR_TEMPLATE_INCOMPLETE);
}

/* More than 32 bits have: what is told is what a search finds. Who sets it takes the rest away, and says nothing wrong. */
static void large(void)
{
	CK_ULONG length, number = 1UL << 60, told = 0xffffffff;
	CK_ATTRIBUTE set = {CKA_HSS_KEYS_REMAINING, &number, sizeof(number)};
	EXPECT(p11->C_SetAttributeValue(session, private_key, &set, 1), CKR_ATTRIBUTE_READ_ONLY);
	number = told + 2;
	OK(p11->C_SetAttributeValue(session, private_key, &set, 1));
	for (CK_ULONG is = told + 1;; is--) {
		CK_OBJECT_HANDLE found[2];
		CK_ATTRIBUTE query = {CKA_HSS_KEYS_REMAINING, &told, sizeof(told)};
		OK(sign(&length));
		OK(verify("message", length));
		CHECK(left() == at_most(is));
		OK(p11->C_FindObjectsInit(session, &query, 1));
		OK(p11->C_FindObjects(session, found, 2, &length));
		OK(p11->C_FindObjectsFinal(session));
		CHECK(length == (is >= told));
		if (is < told) break;
	}
	number = told;
	EXPECT(p11->C_SetAttributeValue(session, private_key, &set, 1), CKR_ATTRIBUTE_READ_ONLY);
}

/* Until nothing is left. */
static void used_up(void)
{
	CK_ULONG length, last = 2;
	CK_ATTRIBUTE remaining = {CKA_HSS_KEYS_REMAINING, &last, sizeof(last)};
	OK(p11->C_SetAttributeValue(session, private_key, &remaining, 1));
	for (CK_ULONG is = 1;; is--) {
		OK(sign(&length));
		OK(verify("message", length));
		CHECK(left() == is);
		if (is == 0) break;
	}
	EXPECT(sign(&length), CKR_KEY_EXHAUSTED);
	CHECK(left() == 0);
}

int main(void)
{
	CK_ULONG length, never[] = {0, SHA2_20_256, LAST + 1, ~0UL}, never_mt[] = {0, SHA2_40_2_256, SHA2_60_3_256, LAST_MT + 1};
	CK_MECHANISM_INFO info;
	session = begin_as_user();
	for (mt = 0; mt < 2; mt++) {
		OK(p11->C_GetMechanismInfo(0, mechanisms[mt].mechanism, &info));
		CHECK(info.ulMinKeySize == 0 && info.ulMaxKeySize == 0);
		refused(mt ? SHA2_20_4_256 : SHA2_10_192, mt ? never_mt : never, 4);
		if (mt) signs(SHA2_20_4_256, 1UL << 20, 9251);
		else signs(SHA2_10_192, 1 << 10, 1492);
		OK(sign(&length));
		travels(length);
		stays();
		/* The last public key is none. */
		if (mt) signs(SHAKE256_60_12_192, 1UL << 60, 8 + 24 * (1 + 12 * 51 + 60));
		else signs(SHAKE256_10_256, 1 << 10, 2500);
		if (mt) large();
		used_up();
	}
	mt = 0;
	signs(SHA2_10_512, 1 << 10, 9092);
	signs(SHAKE_10_256, 1 << 10, 2500);
	OK(p11->C_Finalize(NULL));
	return 0;
}
