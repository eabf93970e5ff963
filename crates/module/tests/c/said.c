/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that a token says of itself, which nobody changes, objects of trust, and what keys are of which nothing is said. The argument is
 * the policy. */
#include "common.h"

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE found[1000];

static CK_ULONG find(CK_ATTRIBUTE *template, CK_ULONG count)
{
	CK_ULONG many;
	OK(p11->C_FindObjectsInit(session, template, count));
	OK(p11->C_FindObjects(session, found, 1000, &many));
	OK(p11->C_FindObjectsFinal(session));
	return many;
}

static CK_ULONG number(CK_OBJECT_HANDLE object, CK_ATTRIBUTE_TYPE type)
{
	CK_ULONG value = 4711;
	CK_ATTRIBUTE attribute = {type, &value, sizeof value};
	OK(p11->C_GetAttributeValue(session, object, &attribute, 1));
	return value;
}

static void profiles(int legacy)
{
	CK_OBJECT_CLASS class = CKO_PROFILE;
	CK_PROFILE_ID wanted[] = {CKP_BASELINE_PROVIDER, CKP_EXTENDED_PROVIDER, CKP_AUTHENTICATION_TOKEN,
				  CKP_HKDF_TLS_TOKEN},
		      id = CKP_EXTENDED_PROVIDER;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_PROFILE_ID, &id, sizeof id}};
	CK_ATTRIBUTE in_sessions[] = {{CKA_CLASS, &class, sizeof class}, {CKA_TOKEN, &no, 1}};
	CK_OBJECT_HANDLE copy;
	CHECK(find(NULL, 0) == 0);
	CHECK(find(in_sessions, 2) == 0);
	CHECK(find(template, 1) == 3u + legacy);
	for (int at = 0; at < 3 + legacy; at++) {
		CK_BBOOL flags[] = {2, 2, 2, 2, 2};
		CK_BYTE name[20];
		CK_ATTRIBUTE said[] = {{CKA_TOKEN, &flags[0], 1},	{CKA_PRIVATE, &flags[1], 1},
				       {CKA_MODIFIABLE, &flags[2], 1}, {CKA_DESTROYABLE, &flags[3], 1},
				       {CKA_COPYABLE, &flags[4], 1},	{CKA_UNIQUE_ID, name, sizeof name}};
		CHECK(number(found[at], CKA_PROFILE_ID) == wanted[at]);
		CHECK(number(found[at], CKA_CLASS) == CKO_PROFILE);
		OK(p11->C_GetAttributeValue(session, found[at], said, 6));
		CHECK(flags[0] && !flags[1] && !flags[2] && !flags[3] && !flags[4]);
		CHECK(said[5].ulValueLen == 10);
	}
	CK_OBJECT_HANDLE first = found[0];
	CK_ATTRIBUTE value = {CKA_VALUE, NULL, 0};
	EXPECT(p11->C_GetAttributeValue(session, first, &value, 1), CKR_ATTRIBUTE_TYPE_INVALID);
	EXPECT(p11->C_SetAttributeValue(session, first, &template[1], 1), CKR_ACTION_PROHIBITED);
	EXPECT(p11->C_DestroyObject(session, first), CKR_ACTION_PROHIBITED);
	EXPECT(p11->C_CopyObject(session, first, NULL, 0, &copy), CKR_ACTION_PROHIBITED);
	EXPECT(p11->C_CreateObject(session, template, 2, &copy), CKR_ATTRIBUTE_READ_ONLY);
	EXPECT(p11->C_DestroyObject(session, first ^ (CK_ULONG)1 << 40), CKR_OBJECT_HANDLE_INVALID);
	CHECK(find(template, 2) == 1 && number(found[0], CKA_PROFILE_ID) == CKP_EXTENDED_PROVIDER);
	id = CKP_COMPLETE_PROVIDER;
	CHECK(find(template, 2) == 0);
	class = CKO_VALIDATION;
	CHECK(find(template, 1) == 0);
	class = CKO_HW_FEATURE;
	CHECK(find(template, 1) == 0);
}

static void mechanisms(void)
{
	CK_OBJECT_CLASS class = CKO_MECHANISM;
	CK_MECHANISM_TYPE type = CKM_AES_GCM, listed[1000];
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_MECHANISM_TYPE, &type, sizeof type}};
	CK_ULONG count = 1000;
	OK(p11->C_GetMechanismList(0, listed, &count));
	CHECK(count <= 1000 && find(template, 1) == count);
	for (CK_ULONG at = 0; at < count; at++)
		CHECK(number(found[at], CKA_MECHANISM_TYPE) == listed[at]);
	CHECK(find(template, 2) == 1 && number(found[0], CKA_MECHANISM_TYPE) == CKM_AES_GCM);
	/* No key, whatever it is asked to do. */
	CK_MECHANISM mechanism = {CKM_SHA256_HMAC, NULL, 0};
	EXPECT(p11->C_SignInit(session, &mechanism, found[0]), CKR_KEY_HANDLE_INVALID);
}

/* The profile's one condition: a key that stays here gives the IVs of TLS 1.3. */
static void tls(void)
{
	CK_BYTE value[32] = {1}, info[] = {0, 12, 't', 'l', 's', ' ', 'i', 'v', 0};
	CK_OBJECT_CLASS secret = CKO_SECRET_KEY, data = CKO_DATA;
	CK_KEY_TYPE type = CKK_HKDF;
	CK_HKDF_PARAMS params = {CK_FALSE, CK_TRUE, CKM_SHA256, CKF_HKDF_SALT_NULL, NULL, 0, 0, info, sizeof info};
	CK_MECHANISM mechanism = {CKM_HKDF_DATA, &params, sizeof params};
	CK_ULONG length = 12;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret, sizeof secret}, {CKA_KEY_TYPE, &type, sizeof type},
				   {CKA_VALUE, value, sizeof value},	{CKA_SENSITIVE, &yes, 1},
				   {CKA_EXTRACTABLE, &no, 1},		{CKA_DERIVE, &yes, 1}};
	CK_ATTRIBUTE iv[] = {{CKA_CLASS, &data, sizeof data}, {CKA_VALUE_LEN, &length, sizeof length}};
	CK_OBJECT_HANDLE key, made;
	OK(p11->C_CreateObject(session, template, 6, &key));
	OK(p11->C_DeriveKey(session, &mechanism, key, iv, 2, &made));
	/* That of SSL 3.0 is no function of TLS, where a policy has it, too. */
	CK_TLS_KDF_PARAMS kdf = {CKM_TLS_PRF, info, 5, {value, 32, value, 32}, NULL, 0};
	CK_MECHANISM exports = {CKM_TLS_KDF, &kdf, sizeof kdf};
	type = CKK_GENERIC_SECRET;
	OK(p11->C_CreateObject(session, template, 6, &key));
	OK(p11->C_DeriveKey(session, &exports, key, iv + 1, 1, &made));
	kdf.prfMechanism = CKM_SSL3_MASTER_KEY_DERIVE;
	EXPECT(p11->C_DeriveKey(session, &exports, key, iv + 1, 1, &made), CKR_MECHANISM_PARAM_INVALID);
}

static void trust(void)
{
	CK_OBJECT_CLASS class = CKO_TRUST;
	CK_BYTE issuer[] = {0x30, 0}, serial[] = {2, 1, 7}, hash[32] = {9};
	CK_MECHANISM_TYPE by = CKM_SHA256;
	CK_TRUST anchor = CKT_TRUST_ANCHOR, never = CKT_NOT_TRUSTED, none = 5;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class},
		{CKA_TOKEN, &yes, 1},
		{CKA_ISSUER, issuer, sizeof issuer},
		{CKA_SERIAL_NUMBER, serial, sizeof serial},
		{CKA_TRUST_CODE_SIGNING, &never, sizeof never},
		{CKA_NAME_HASH_ALGORITHM, &by, sizeof by},
		{CKA_TRUST_SERVER_AUTH, &anchor, sizeof anchor},
		{CKA_HASH_OF_CERTIFICATE, hash, sizeof hash},
	};
	CK_ATTRIBUTE other = {CKA_TRUST_SERVER_AUTH, &none, sizeof none};
	CK_OBJECT_HANDLE made;
	EXPECT(p11->C_CreateObject(session, template, 3, &made), CKR_TEMPLATE_INCOMPLETE);
	EXPECT(p11->C_CreateObject(session, template, 7, &made), CKR_TEMPLATE_INCOMPLETE);
	/* What is said and empty is as what is not said. */
	for (int empty = 2; empty < 8; empty += empty == 2 ? 1 : 4) {
		CK_ULONG length = template[empty].ulValueLen;
		template[empty].ulValueLen = 0;
		EXPECT(p11->C_CreateObject(session, template, 8, &made), CKR_TEMPLATE_INCOMPLETE);
		template[empty].ulValueLen = length;
	}
	/* A digest is as long as those of its function, and of SHA-1 where none is named. */
	static const struct {
		CK_MECHANISM_TYPE by;
		CK_ULONG length;
		CK_RV expected;
	} digests[] = {{CKM_SHA256, 31, CKR_TEMPLATE_INCONSISTENT}, {CKM_SHA256, 20, CKR_TEMPLATE_INCONSISTENT},
		       {CKM_SHA_1, 32, CKR_TEMPLATE_INCONSISTENT},  {CKM_SHA3_512, 32, CKR_TEMPLATE_INCONSISTENT},
		       {CKM_SHA_1, 20, CKR_OK},			    {CKM_SHA3_256, 32, CKR_OK}};
	for (int named = 0; named < 2; named++) {
		template[5].type = named ? CKA_NAME_HASH_ALGORITHM : CKA_LABEL;
		for (size_t at = 0; at < sizeof digests / sizeof *digests; at++) {
			int right = named ? digests[at].expected == CKR_OK : digests[at].length == 20;
			by = digests[at].by;
			template[7].ulValueLen = digests[at].length;
			EXPECT(p11->C_CreateObject(session, template, 8, &made), right ? CKR_OK : CKR_TEMPLATE_INCONSISTENT);
			if (right) OK(p11->C_DestroyObject(session, made));
		}
	}
	by = CKM_SHA256;
	template[7].ulValueLen = sizeof hash;
	OK(p11->C_CreateObject(session, template, 5, &made));
	CK_ATTRIBUTE digest = {CKA_HASH_OF_CERTIFICATE, NULL, 7};
	OK(p11->C_GetAttributeValue(session, made, &digest, 1));
	CHECK(digest.ulValueLen == 0);
	EXPECT(p11->C_SetAttributeValue(session, made, &template[6], 1), CKR_TEMPLATE_INCONSISTENT);
	OK(p11->C_DestroyObject(session, made));
	OK(p11->C_CreateObject(session, template, 8, &made));
	CHECK(number(made, CKA_TRUST_SERVER_AUTH) == CKT_TRUST_ANCHOR);
	CHECK(number(made, CKA_TRUST_CODE_SIGNING) == CKT_NOT_TRUSTED);
	CHECK(number(made, CKA_TRUST_OCSP_SIGNING) == CKT_TRUST_UNKNOWN);
	EXPECT(p11->C_SetAttributeValue(session, made, &other, 1), CKR_ATTRIBUTE_VALUE_INVALID);
	none = CKT_NOT_TRUSTED;
	OK(p11->C_SetAttributeValue(session, made, &other, 1));
	CHECK(number(made, CKA_TRUST_SERVER_AUTH) == CKT_NOT_TRUSTED);
	CHECK(find(&template[2], 2) == 1 && found[0] == made);
	CHECK(find(template, 1) == 1 && found[0] == made);
	serial[2] = 8;
	OK(p11->C_CreateObject(session, template, 8, &made));
	/* It is there for the next process as well. */
	OK(p11->C_CloseAllSessions(0));
	OK(p11->C_Finalize(NULL));
	OK(p11->C_Initialize(NULL));
	session = open_session();
	serial[2] = 7;
	CHECK(find(template, 4) == 1);
	CHECK(number(found[0], CKA_TRUST_CODE_SIGNING) == CKT_NOT_TRUSTED);
	/* Who can write the store's file can write what needs no login: nothing is trusted by that. */
	serial[2] = 9;
	OK(p11->C_CreateObject(session, template, 8, &made));
	for (int login = 0; login < 2; login++) {
		for (serial[2] = 8; serial[2] <= 9; serial[2]++) {
			int is_trusted = login && serial[2] == 8;
			CHECK(find(template, 4) == 1);
			CHECK(number(found[0], CKA_TRUST_SERVER_AUTH) == (is_trusted ? CKT_TRUST_ANCHOR : CKT_TRUST_UNKNOWN));
			CHECK(number(found[0], CKA_TRUST_CODE_SIGNING) == CKT_NOT_TRUSTED);
			CHECK(find(template, 8) == (CK_ULONG)is_trusted);
		}
		if (!login) OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	}
}

/* PKCS#11 3.2 §5.18.4. Where the key that opens does not decrypt, the default policy is the other way. */
static void what_is_unwrapped_may_leave_again(int legacy)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, kwp = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE aes = CKK_AES;
	CK_ULONG length = 32, wrapped_length;
	CK_BYTE wrapped[40];
	CK_BBOOL said[2];
	CK_ATTRIBUTE key[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &aes, sizeof aes},
			      {CKA_VALUE, "thirty-two bytes, which are known", 32}};
	CK_ATTRIBUTE by[] = {{CKA_VALUE_LEN, &length, sizeof length}, {CKA_WRAP, &yes, 1}, {CKA_UNWRAP, &yes, 1},
			     {CKA_DECRYPT, &yes, 1}};
	CK_ATTRIBUTE asked[] = {{CKA_EXTRACTABLE, &said[0], 1}, {CKA_SENSITIVE, &said[1], 1}};
	CK_OBJECT_HANDLE known, opens, back;
	OK(p11->C_CreateObject(session, key, 3, &known));
	for (CK_ULONG decrypts = 0; decrypts < 2; decrypts++) {
		OK(p11->C_GenerateKey(session, &generate, by, 3 + decrypts, &opens));
		wrapped_length = sizeof wrapped;
		OK(p11->C_WrapKey(session, &kwp, opens, known, wrapped, &wrapped_length));
		OK(p11->C_UnwrapKey(session, &kwp, opens, wrapped, wrapped_length, key, 2, &back));
		OK(p11->C_GetAttributeValue(session, back, asked, 2));
		CHECK(said[0] == (legacy || decrypts) && said[1]);
	}
}

int main(int argc, char **argv)
{
	int legacy = argc > 1 && strcmp(argv[1], "legacy") == 0;
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	session = open_session();
	/* Nobody has logged in: a profile is for everybody to see. */
	profiles(legacy);
	mechanisms();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	profiles(legacy);
	if (legacy) tls();
	trust();
	what_is_unwrapped_may_leave_again(legacy);
	OK(p11->C_Finalize(NULL));
	return 0;
}
