/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapping by GCM and CCM with a nonce and a tag that the caller is told: published vectors, nonces that the token makes, what
 * is refused, and the bound form, which cannot be opened as one that says nothing. */
#include "common.h"

static CK_SESSION_HANDLE session;
static CK_OBJECT_CLASS secret_class = CKO_SECRET_KEY;
static CK_KEY_TYPE generic = CKK_GENERIC_SECRET, aes = CKK_AES;
static CK_BYTE data[] = "associated";

static CK_OBJECT_HANDLE imported(CK_KEY_TYPE *type, CK_BYTE *value, CK_ULONG length)
{
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &secret_class, sizeof secret_class},
		{CKA_KEY_TYPE, type, sizeof *type},
		{CKA_VALUE, value, length},
		{CKA_SENSITIVE, &no, 1},
		{CKA_EXTRACTABLE, &yes, 1},
		{CKA_WRAP, &yes, 1},
		{CKA_UNWRAP, &yes, 1},
		{CKA_ENCRYPT, &yes, 1},
		{CKA_DECRYPT, &yes, 1},
	};
	CK_OBJECT_HANDLE key;
	OK(p11->C_CreateObject(session, template, type == &aes ? 9 : 5, &key));
	return key;
}

/* A key that never leaves and wraps others; `more` is said of it, too. */
static CK_OBJECT_HANDLE wrapping_key(CK_ATTRIBUTE *more, CK_ULONG count)
{
	CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG bytes = 32;
	CK_ATTRIBUTE template[8] = {{CKA_VALUE_LEN, &bytes, sizeof bytes},
				    {CKA_SENSITIVE, &yes, 1},
				    {CKA_EXTRACTABLE, &no, 1},
				    {CKA_WRAP, &yes, 1},
				    {CKA_UNWRAP, &yes, 1}};
	CK_OBJECT_HANDLE key;
	for (CK_ULONG at = 0; at < count; at++)
		template[5 + at] = more[at];
	OK(p11->C_GenerateKey(session, &mechanism, template, 5 + count, &key));
	return key;
}

/* A key that may leave. */
static CK_OBJECT_HANDLE target(CK_ATTRIBUTE *more, CK_ULONG count)
{
	CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG bytes = 16;
	CK_ATTRIBUTE template[6] = {{CKA_VALUE_LEN, &bytes, sizeof bytes},
				    {CKA_SENSITIVE, &yes, 1},
				    {CKA_EXTRACTABLE, &yes, 1}};
	CK_OBJECT_HANDLE key;
	for (CK_ULONG at = 0; at < count; at++)
		template[3 + at] = more[at];
	OK(p11->C_GenerateKey(session, &mechanism, template, 3 + count, &key));
	return key;
}

static CK_ATTRIBUTE arriving[] = {{CKA_CLASS, &secret_class, sizeof secret_class},
				  {CKA_KEY_TYPE, &aes, sizeof aes}};

static void value_is(CK_OBJECT_HANDLE key, const CK_BYTE *expected, CK_ULONG length)
{
	CK_BYTE value[100];
	CK_ATTRIBUTE attribute = {CKA_VALUE, value, sizeof value};
	OK(p11->C_GetAttributeValue(session, key, &attribute, 1));
	CHECK(attribute.ulValueLen == length && memcmp(value, expected, length) == 0);
}

/* One mechanism with the nonce, the tag and the structures of both of its forms. */
struct form {
	CK_BYTE nonce[20], tag[16];
	CK_GCM_MESSAGE_PARAMS gcm;
	CK_CCM_MESSAGE_PARAMS ccm;
	CK_GCM_WRAP_PARAMS gcm_whole;
	CK_CCM_WRAP_PARAMS ccm_whole;
	CK_MECHANISM apart, whole;
};

static struct form *form(CK_MECHANISM_TYPE type, CK_ULONG length, CK_ULONG fixed, CK_GENERATOR_FUNCTION by)
{
	static struct form f;
	memset(&f, 0, sizeof f);
	f.gcm = (CK_GCM_MESSAGE_PARAMS){f.nonce, length, fixed, by, f.tag, 128};
	f.ccm = (CK_CCM_MESSAGE_PARAMS){0, f.nonce, length, fixed, by, f.tag, 16};
	f.gcm_whole = (CK_GCM_WRAP_PARAMS){f.nonce, length, fixed, by, data, sizeof data, 128};
	f.ccm_whole = (CK_CCM_WRAP_PARAMS){4711, f.nonce, length, fixed, by, data, sizeof data, 16};
	if (type == CKM_AES_GCM) {
		f.apart = (CK_MECHANISM){type, &f.gcm, sizeof f.gcm};
		f.whole = (CK_MECHANISM){type, &f.gcm_whole, sizeof f.gcm_whole};
	} else {
		f.apart = (CK_MECHANISM){type, &f.ccm, sizeof f.ccm};
		f.whole = (CK_MECHANISM){type, &f.ccm_whole, sizeof f.ccm_whole};
	}
	return &f;
}

/* The specification of GCM (McGrew and Viega), test case 4; RFC 3610, packet vector 1. */
static struct {
	CK_MECHANISM_TYPE mechanism;
	CK_ULONG nonce, tag, length, associated;
	const char *key, *iv, *aad, *plain, *sealed, *mac;
} published[] = {
	{CKM_AES_GCM, 12, 16, 60, 20, "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
	 "feedfacedeadbeeffeedfacedeadbeefabaddad2",
	 "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
	 "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
	 "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
	 "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
	 "5bc94fbc3221a5db94fae95ae7121a47"},
	{CKM_AES_CCM, 13, 8, 23, 8, "c0c1c2c3c4c5c6c7c8c9cacbcccdcecf", "00000003020100a0a1a2a3a4a5",
	 "0001020304050607", "08090a0b0c0d0e0f101112131415161718191a1b1c1d1e",
	 "588c979a61c663d2f066d0c2c0f989806d5f6b61dac384", "17e8d12cfdf926e0"},
};

static CK_BYTE *bytes(const char *hex)
{
	static CK_BYTE kept[8][64];
	static int at;
	CK_BYTE *out = kept[at++ % 8];
	for (int byte = 0; hex[2 * byte] != 0; byte++)
		sscanf(hex + 2 * byte, "%2hhx", &out[byte]);
	return out;
}

static void vectors(void)
{
	for (int at = 0; at < 2; at++) {
		CK_OBJECT_HANDLE by = imported(&aes, bytes(published[at].key), 16), opened;
		CK_OBJECT_HANDLE key = imported(&generic, bytes(published[at].plain), published[at].length);
		CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret_class, sizeof secret_class},
					   {CKA_KEY_TYPE, &generic, sizeof generic},
					   {CKA_SENSITIVE, &no, 1},
					   {CKA_EXTRACTABLE, &yes, 1}};
		CK_BYTE *aad = bytes(published[at].aad), out[80];
		CK_ULONG length = sizeof out, associated = published[at].associated;
		struct form *f = form(published[at].mechanism, published[at].nonce, 0, CKG_NO_GENERATE);
		memcpy(f->nonce, bytes(published[at].iv), published[at].nonce);
		f->gcm.ulTagBits = 8 * published[at].tag;
		f->ccm.ulMACLen = published[at].tag;
		OK(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, aad, associated, out, &length));
		CHECK(length == published[at].length);
		CHECK(memcmp(out, bytes(published[at].sealed), length) == 0);
		CHECK(memcmp(f->tag, bytes(published[at].mac), published[at].tag) == 0);
		CHECK(memcmp(f->nonce, bytes(published[at].iv), published[at].nonce) == 0);
		OK(p11->C_UnwrapKeyAuthenticated(session, &f->apart, by, out, length, template, 4, aad,
						 associated, &opened));
		value_is(opened, bytes(published[at].plain), length);
		/* The same with the tag behind the bytes, and the data in the parameter. */
		f->gcm_whole.pAAD = f->ccm_whole.pAAD = aad;
		f->gcm_whole.ulAADLen = f->ccm_whole.ulAADLen = associated;
		f->gcm_whole.ulTagBits = 8 * published[at].tag;
		f->ccm_whole.ulMACLen = published[at].tag;
		memcpy(out + length, f->tag, published[at].tag);
		OK(p11->C_UnwrapKey(session, &f->whole, by, out, length + published[at].tag, template, 4,
				    &opened));
		value_is(opened, bytes(published[at].plain), published[at].length);
	}
}

/* Keys that stay in the token, under nonces that the token makes. */
static void made(CK_MECHANISM_TYPE type)
{
	CK_OBJECT_HANDLE by = wrapping_key(NULL, 0), key = target(NULL, 0), opened;
	CK_BYTE out[40], first[12];
	CK_ULONG length = sizeof out;
	struct form *f = form(type, 12, 0, CKG_GENERATE);
	OK(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, data, sizeof data, NULL, &length));
	CHECK(length == 16);
	length = 15;
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, data, sizeof data, out, &length),
	       CKR_BUFFER_TOO_SMALL);
	CHECK(length == 16);
	for (int at = 0; at < 16; at++)
		CHECK(f->nonce[at] == 0 && f->tag[at] == 0);
	OK(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, data, sizeof data, out, &length));
	memcpy(first, f->nonce, 12);
	OK(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, data, sizeof data, out, &length));
	CHECK(memcmp(first, f->nonce, 12) != 0);
	OK(p11->C_UnwrapKeyAuthenticated(session, &f->apart, by, out, length, arriving, 2, data, sizeof data,
					 &opened));
	CK_BBOOL local = 2, never = 2, sensitive = 2;
	CK_ATTRIBUTE said[] = {
		{CKA_LOCAL, &local, 1}, {CKA_NEVER_EXTRACTABLE, &never, 1}, {CKA_SENSITIVE, &sensitive, 1}};
	OK(p11->C_GetAttributeValue(session, opened, said, 3));
	CHECK(!local && !never && sensitive);
	/* Whatever is changed, nothing is opened. */
	CK_OBJECT_HANDLE none = 4711;
	for (int what = 0; what < 4; what++) {
		CK_BYTE *place = (CK_BYTE *[]){out, f->nonce, f->tag, data}[what];
		*place ^= 1;
		EXPECT(p11->C_UnwrapKeyAuthenticated(session, &f->apart, by, out, length, arriving, 2, data,
						     sizeof data, &none),
		       CKR_WRAPPED_KEY_INVALID);
		*place ^= 1;
	}
	EXPECT(p11->C_UnwrapKeyAuthenticated(session, &f->apart, by, out, length - 1, arriving, 2, data,
					     sizeof data, &none),
	       CKR_WRAPPED_KEY_INVALID);
	CHECK(none == 4711);
	/* The tag behind the bytes. */
	length = sizeof out;
	OK(p11->C_WrapKey(session, &f->whole, by, key, out, &length));
	CHECK(length == 32);
	OK(p11->C_UnwrapKey(session, &f->whole, by, out, length, arriving, 2, &opened));
	EXPECT(p11->C_UnwrapKey(session, &f->whole, by, out, 15, arriving, 2, &opened),
	       CKR_WRAPPED_KEY_LEN_RANGE);
	/* The beginning of a nonce that the caller fixes stays, to the bit. */
	if (type == CKM_AES_GCM) {
		f = form(type, 16, 29, CKG_GENERATE_RANDOM);
		memset(f->nonce, 0xa5, 16);
		for (int at = 0; at < 20; at++) {
			length = sizeof out;
			OK(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, NULL, 0, out, &length));
			CHECK(memcmp(f->nonce, "\xa5\xa5\xa5", 3) == 0 && f->nonce[3] >> 3 == 0xa5 >> 3);
		}
	}
}

static void refused(CK_MECHANISM_TYPE type)
{
	struct {
		CK_ULONG nonce, fixed;
		CK_GENERATOR_FUNCTION by;
		CK_RV rv;
	} rows[] = {
		{12, 1, CKG_GENERATE, CKR_MECHANISM_PARAM_INVALID},
		{12, 96, CKG_GENERATE_RANDOM, CKR_MECHANISM_PARAM_INVALID},
		{11, 0, CKG_GENERATE, CKR_MECHANISM_PARAM_INVALID},
		{0, 0, CKG_GENERATE, CKR_MECHANISM_PARAM_INVALID},
		{0, 0, CKG_NO_GENERATE, CKR_MECHANISM_PARAM_INVALID},
		{12, CK_UNAVAILABLE_INFORMATION, CKG_GENERATE, CKR_MECHANISM_PARAM_INVALID},
		{12, 0, CKG_GENERATE_COUNTER, CKR_MECHANISM_PARAM_INVALID},
		{12, 0, CKG_GENERATE_COUNTER_XOR, CKR_MECHANISM_PARAM_INVALID},
		{12, 0, 5, CKR_MECHANISM_PARAM_INVALID},
		/* One nonce for two keys would give both away. */
		{12, 0, CKG_NO_GENERATE, CKR_MECHANISM_INVALID},
	};
	CK_OBJECT_HANDLE by = wrapping_key(NULL, 0), key = target(NULL, 0), made;
	CK_ATTRIBUTE may_not[] = {{CKA_ENCRYPT, &no, 1}};
	CK_BYTE out[64], tag[4] = {0};
	CK_ULONG length = sizeof out;
	for (unsigned at = 0; at < sizeof rows / sizeof *rows; at++) {
		struct form *f = form(type, rows[at].nonce, rows[at].fixed, rows[at].by);
		EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, data, sizeof data, out, &length),
		       rows[at].rv);
		EXPECT(p11->C_WrapKey(session, &f->whole, by, key, out, &length), rows[at].rv);
	}
	struct form *f = form(type, 12, 0, CKG_GENERATE);
	f->gcm.pTag = f->ccm.pMAC = NULL;
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, data, sizeof data, out, &length),
	       CKR_MECHANISM_PARAM_INVALID);
	f->gcm.pTag = f->ccm.pMAC = tag;
	f->gcm.ulTagBits = 32;
	f->ccm.ulMACLen = 4;
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, data, sizeof data, out, &length),
	       CKR_MECHANISM_PARAM_INVALID);
	f = form(type, 12, 0, CKG_GENERATE);
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, NULL, 1, out, &length), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, key, by, data, sizeof data, out, &length),
	       CKR_KEY_FUNCTION_NOT_PERMITTED);
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, by, data, sizeof data, out, &length),
	       CKR_KEY_UNEXTRACTABLE);
	f->apart.ulParameterLen--;
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, data, sizeof data, out, &length),
	       CKR_MECHANISM_PARAM_INVALID);
	CK_MECHANISM other = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	EXPECT(p11->C_WrapKeyAuthenticated(session, &other, by, key, data, sizeof data, out, &length),
	       CKR_MECHANISM_INVALID);
	EXPECT(p11->C_UnwrapKeyAuthenticated(session, &other, by, out, 24, arriving, 2, data, sizeof data, &made),
	       CKR_MECHANISM_INVALID);
	/* A form that says nothing of the key would forget what it may not. */
	f = form(type, 12, 0, CKG_GENERATE);
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, target(may_not, 1), data, sizeof data, out,
					   &length),
	       CKR_KEY_NOT_WRAPPABLE);
}

/* What the keys' templates say: which keys leave, and what arrives. */
static void templates(CK_MECHANISM_TYPE type)
{
	CK_BYTE out[64], id[] = "id";
	CK_ULONG length = sizeof out;
	CK_ATTRIBUTE with_id[] = {{CKA_ID, id, 2}}, hidden[] = {{CKA_EXTRACTABLE, &no, 1}};
	CK_ATTRIBUTE own[] = {{CKA_WRAP_TEMPLATE, with_id, sizeof with_id},
			      {CKA_UNWRAP_TEMPLATE, hidden, sizeof hidden}};
	CK_ATTRIBUTE other[] = {arriving[0], arriving[1], {CKA_EXTRACTABLE, &yes, 1}};
	CK_OBJECT_HANDLE by = wrapping_key(own, 2), opened;
	CK_BBOOL extractable = 2;
	CK_ATTRIBUTE said = {CKA_EXTRACTABLE, &extractable, 1};
	struct form *f = form(type, 12, 0, CKG_GENERATE);
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, target(NULL, 0), data, sizeof data, out,
					   &length),
	       CKR_KEY_HANDLE_INVALID);
	OK(p11->C_WrapKeyAuthenticated(session, &f->apart, by, target(with_id, 1), data, sizeof data, out,
				       &length));
	EXPECT(p11->C_UnwrapKeyAuthenticated(session, &f->apart, by, out, length, other, 3, data, sizeof data,
					     &opened),
	       CKR_TEMPLATE_INCONSISTENT);
	OK(p11->C_UnwrapKeyAuthenticated(session, &f->apart, by, out, length, arriving, 2, data, sizeof data,
					 &opened));
	OK(p11->C_GetAttributeValue(session, opened, &said, 1));
	CHECK(!extractable);
}

/* `C_WrapKey` with GCM and no nonce makes a form that says what the key is. Its parts, given to the other function, would be a key
 * that it says nothing of. */
static void bound(void)
{
	CK_ATTRIBUTE may_not[] = {{CKA_ENCRYPT, &no, 1}};
	CK_OBJECT_HANDLE by = wrapping_key(NULL, 0), key = target(may_not, 1), opened;
	CK_GCM_PARAMS params = {NULL, 0, 0, NULL, 0, 128};
	CK_MECHANISM mechanism = {CKM_AES_GCM, &params, sizeof params};
	CK_BYTE out[2000], aad[2000];
	CK_ULONG length = sizeof out, head;
	OK(p11->C_WrapKey(session, &mechanism, by, key, out, &length));
	head = length - 16 - 16;
	struct form *f = form(CKM_AES_GCM, 12, 0, CKG_NO_GENERATE);
	memcpy(f->nonce, out + 8, 12);
	memcpy(f->tag, out + length - 16, 16);
	memcpy(aad, out, head);
	memset(aad + head, 0, 8);
	EXPECT(p11->C_UnwrapKeyAuthenticated(session, &f->apart, by, out + head, 16, arriving, 2, aad, head + 8,
					     &opened),
	       CKR_WRAPPED_KEY_INVALID);
	f->gcm_whole.pAAD = aad;
	f->gcm_whole.ulAADLen = head + 8;
	EXPECT(p11->C_UnwrapKey(session, &f->whole, by, out + head, 32, arriving, 2, &opened),
	       CKR_WRAPPED_KEY_INVALID);
	OK(p11->C_UnwrapKey(session, &mechanism, by, out, length, arriving, 2, &opened));
	/* Nor is a form that says nothing made to look like one, under a key that may choose its nonce. */
	CK_BYTE value[16] = {1};
	by = imported(&aes, value, 16);
	key = imported(&generic, value, 16);
	f = form(CKM_AES_GCM, 12, 0, CKG_NO_GENERATE);
	memcpy(f->nonce, aad + 8, 12);
	length = sizeof out;
	EXPECT(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, aad, head + 8, out, &length),
	       CKR_MECHANISM_PARAM_INVALID);
	f->nonce[0] ^= 1;
	OK(p11->C_WrapKeyAuthenticated(session, &f->apart, by, key, aad, head + 8, out, &length));
}

int main(void)
{
	CK_MECHANISM_TYPE types[] = {CKM_AES_GCM, CKM_AES_CCM};
	session = begin_as_user();
	vectors();
	for (int at = 0; at < 2; at++) {
		made(types[at]);
		refused(types[at]);
		templates(types[at]);
	}
	bound();
	OK(p11->C_Finalize(NULL));
	return 0;
}
