// SPDX-License-Identifier: Apache-2.0
/* What the module promises its hosts beyond the standard's words, one function per promise. */
#include "common.h"
#include <stddef.h>
#include <sys/stat.h>

static CK_SESSION_HANDLE session;

/* NULL, NULL mutexes, NSS' flags; what cannot be granted is refused. */
static CK_RV no_mutex(void **mutex)
{
	(void)mutex;
	return CKR_OK;
}
static CK_RV no_lock(void *mutex)
{
	(void)mutex;
	return CKR_OK;
}

static void initialization_accepts_what_hosts_pass(void)
{
	CK_C_INITIALIZE_ARGS arguments = {0};
	EXPECT(p11->C_GetInfo(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
	EXPECT(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
	OK(p11->C_Initialize(NULL));
	EXPECT(p11->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
	EXPECT(p11->C_Finalize(&arguments), CKR_ARGUMENTS_BAD);
	OK(p11->C_Finalize(NULL));
	OK(p11->C_Initialize(&arguments));
	OK(p11->C_Finalize(NULL));
	arguments.flags = CKF_OS_LOCKING_OK | CKF_LIBRARY_CANT_CREATE_OS_THREADS;
	OK(p11->C_Initialize(&arguments));
	OK(p11->C_Finalize(NULL));
	arguments.pReserved = &arguments;
	EXPECT(p11->C_Initialize(&arguments), CKR_ARGUMENTS_BAD);
	arguments.pReserved = NULL;
	arguments.CreateMutex = no_mutex;
	EXPECT(p11->C_Initialize(&arguments), CKR_ARGUMENTS_BAD);
	arguments.DestroyMutex = arguments.LockMutex = arguments.UnlockMutex = no_lock;
	OK(p11->C_Initialize(&arguments));
	OK(p11->C_Finalize(NULL));
	arguments.flags = 0;
	EXPECT(p11->C_Initialize(&arguments), CKR_CANT_LOCK);
}

static void interfaces_are_found_by_name_version_and_flags(void)
{
	CK_RV (*get)(CK_UTF8CHAR *, CK_VERSION *, CK_INTERFACE **, CK_FLAGS) = p11->C_GetInterface;
	CK_INTERFACE *found, all[8];
	CK_VERSION version = {3, 0};
	CK_FUNCTION_LIST *list;
	CK_ULONG count = 0;
	OK(p11->C_GetInterfaceList(NULL, &count));
	CHECK(count == 4);
	count = 3;
	EXPECT(p11->C_GetInterfaceList(all, &count), CKR_BUFFER_TOO_SMALL);
	CHECK(count == 4);
	OK(p11->C_GetInterfaceList(all, &count));
	CHECK(strcmp((char *)all[0].pInterfaceName, "PKCS 11") == 0);
	for (int i = 0; i < 4; i++) CHECK(all[i].flags == 0);
	OK(get(NULL, NULL, &found, 0));
	CHECK(((CK_VERSION *)found->pFunctionList)->major == 3);
	CHECK(((CK_VERSION *)found->pFunctionList)->minor == 2);
	OK(get((CK_UTF8CHAR *)"PKCS 11", &version, &found, 0));
	CHECK(((CK_VERSION *)found->pFunctionList)->minor == 0);
	version = (CK_VERSION){2, 40};
	OK(get((CK_UTF8CHAR *)"PKCS 11", &version, &found, 0));
	OK(p11->C_Initialize(NULL));
	OK(((CK_FUNCTION_LIST *)found->pFunctionList)->C_Finalize(NULL));
	version = (CK_VERSION){3, 1};
	EXPECT(get((CK_UTF8CHAR *)"PKCS 11", &version, &found, 0), CKR_ARGUMENTS_BAD);
	EXPECT(get((CK_UTF8CHAR *)"PKCS 11", NULL, &found, CKF_INTERFACE_FORK_SAFE), CKR_ARGUMENTS_BAD);
	EXPECT(get((CK_UTF8CHAR *)"Vendor NSS FIPS Interface", NULL, &found, 0), CKR_ARGUMENTS_BAD);
	*(void **)&list = dlsym(library, "C_GetFunctionList");
	OK(((CK_C_GetFunctionList)(void *)list)(&list));
	CHECK(list->version.major == 2 && list->version.minor == 40);
}

static void slots_are_small_and_stable(void)
{
	CK_SLOT_ID slots[4];
	CK_ULONG count = 0;
	CK_SLOT_INFO info;
	CK_TOKEN_INFO token;
	OK(p11->C_GetSlotList(CK_FALSE, NULL, &count));
	CHECK(count == 1);
	count = 0;
	EXPECT(p11->C_GetSlotList(CK_FALSE, slots, &count), CKR_BUFFER_TOO_SMALL);
	count = 4;
	OK(p11->C_GetSlotList(CK_TRUE, slots, &count));
	CHECK(count == 1 && slots[0] == 0);
	OK(p11->C_GetSlotInfo(0, &info));
	CHECK(info.flags == CKF_TOKEN_PRESENT);
	CHECK(info.slotDescription[63] == ' ' && info.manufacturerID[31] == ' ');
	OK(p11->C_GetTokenInfo(0, &token));
	CHECK((token.flags & CKF_TOKEN_INITIALIZED) == 0);
	CHECK(token.label[31] == ' ' && token.serialNumber[15] != 0);
	EXPECT(p11->C_GetSlotInfo(1, &info), CKR_SLOT_ID_INVALID);
}

/* Plain acceleration works on a token that was never made, without a login. */
static void session_objects_need_no_login(void)
{
	CK_BYTE value[16] = {1}, iv[16] = {2}, data[32] = {3}, out[48];
	CK_MECHANISM cbc = {CKM_AES_CBC, iv, 16};
	CK_ULONG length = sizeof out;
	CK_OBJECT_HANDLE key = import_key(session, CKK_AES, value, 16);
	OK(p11->C_EncryptInit(session, &cbc, key));
	OK(p11->C_Encrypt(session, data, 32, out, &length));
	CHECK(length == 32);
	OK(p11->C_DestroyObject(session, key));
}

static void attributes_are_filled_as_far_as_they_exist(void)
{
	CK_BYTE value[16] = {1}, id[8] = "12345678", text[64];
	CK_OBJECT_HANDLE key;
	CK_OBJECT_CLASS class;
	CK_KEY_TYPE type = CKK_AES;
	CK_BBOOL flag = 9;
	CK_OBJECT_CLASS secret = CKO_SECRET_KEY;
	CK_ATTRIBUTE made[] = {{CKA_CLASS, &secret, sizeof secret},
			       {CKA_KEY_TYPE, &type, sizeof type},
			       {CKA_VALUE, value, 16},
			       {CKA_ID, id, 8},
			       {CKA_SENSITIVE, &yes, 1}};
	CK_ATTRIBUTE asked[] = {{CKA_CLASS, &class, sizeof class}, {CKA_MODULUS, text, sizeof text},
				{CKA_ID, text, 3},		   {CKA_VALUE, text, sizeof text},
				{CKA_COPYABLE, &flag, 1},	   {CKA_ID, NULL, 0},
				{CKA_UNIQUE_ID, NULL, 0},	   {0x7fffffff, NULL, 0}};
	CK_RV rv;
	OK(p11->C_CreateObject(session, made, 5, &key));
	rv = p11->C_GetAttributeValue(session, key, asked, 8);
	CHECK(rv == CKR_ATTRIBUTE_TYPE_INVALID || rv == CKR_ATTRIBUTE_SENSITIVE ||
	      rv == CKR_BUFFER_TOO_SMALL);
	CHECK(asked[0].ulValueLen == sizeof class && class == CKO_SECRET_KEY);
	CHECK(asked[1].ulValueLen == CK_UNAVAILABLE_INFORMATION);
	CHECK(asked[2].ulValueLen == CK_UNAVAILABLE_INFORMATION);
	CHECK(asked[3].ulValueLen == CK_UNAVAILABLE_INFORMATION);
	CHECK(asked[4].ulValueLen == 1 && flag == CK_TRUE);
	CHECK(asked[5].ulValueLen == 8);
	CHECK(asked[6].ulValueLen > 0 && asked[6].ulValueLen != CK_UNAVAILABLE_INFORMATION);
	CHECK(asked[7].ulValueLen == CK_UNAVAILABLE_INFORMATION);
	EXPECT(p11->C_GetAttributeValue(session, key, &asked[3], 1), CKR_ATTRIBUTE_SENSITIVE);
	OK(p11->C_DestroyObject(session, key));
}

/* The time of the shortest of several calls, in nanoseconds. */
#define SHORTEST(best, call) \
	do { \
		best = ~0UL; \
		for (int i_ = 0; i_ < 50; i_++) { \
			struct timespec a_, b_; \
			clock_gettime(CLOCK_MONOTONIC, &a_); \
			call; \
			clock_gettime(CLOCK_MONOTONIC, &b_); \
			unsigned long t_ = (unsigned long)((b_.tv_sec - a_.tv_sec) * 1000000000L + \
							   (b_.tv_nsec - a_.tv_nsec)); \
			if (t_ < best) best = t_; \
		} \
	} while (0)

static void key_pair(CK_OBJECT_HANDLE *public, CK_OBJECT_HANDLE *private, CK_BBOOL token)
{
	CK_MECHANISM generate = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
	CK_ULONG bits = 2048;
	CK_BYTE exponent[] = {1, 0, 1};
	CK_ATTRIBUTE publics[] = {{CKA_MODULUS_BITS, &bits, sizeof bits},
				  {CKA_PUBLIC_EXPONENT, exponent, 3},
				  {CKA_TOKEN, &token, 1}};
	CK_ATTRIBUTE privates[] = {{CKA_TOKEN, &token, 1}, {CKA_PRIVATE, &token, 1},
				   {CKA_SENSITIVE, &yes, 1}};
	OK(p11->C_GenerateKeyPair(session, &generate, publics, 3, privates, 3, public, private));
}

static void a_length_query_does_no_cryptography(void)
{
	CK_OBJECT_HANDLE public, private;
	CK_MECHANISM sign = {CKM_SHA256_RSA_PKCS, NULL, 0};
	CK_BYTE signature[256];
	CK_ULONG length = 0;
	unsigned long asking;
	key_pair(&public, &private, CK_FALSE);
	OK(p11->C_SignInit(session, &sign, private));
	SHORTEST(asking, OK(p11->C_Sign(session, signature, 10, NULL, &length)));
	CHECK(length == 256);
	/* A signature takes 300 microseconds and more. */
	CHECK(asking < 50000);
	length = 255;
	EXPECT(p11->C_Sign(session, signature, 10, signature, &length), CKR_BUFFER_TOO_SMALL);
	CHECK(length == 256);
	OK(p11->C_Sign(session, (CK_BYTE *)"0123456789", 10, signature, &length));
	EXPECT(p11->C_Sign(session, signature, 10, signature, &length),
	       CKR_OPERATION_NOT_INITIALIZED);
	OK(p11->C_VerifyInit(session, &sign, public));
	OK(p11->C_Verify(session, (CK_BYTE *)"0123456789", 10, signature, length));

	/* OAEP with zeros for hash and generator is OAEP with SHA-1. */
	CK_RSA_PKCS_OAEP_PARAMS zeros = {0, 0, 0, NULL, 0},
				sha1 = {CKM_SHA_1, CKG_MGF1_SHA1, CKZ_DATA_SPECIFIED, NULL, 0};
	CK_MECHANISM lenient = {CKM_RSA_PKCS_OAEP, &zeros, sizeof zeros},
		     strict = {CKM_RSA_PKCS_OAEP, &sha1, sizeof sha1};
	CK_BYTE sealed[256], opened[256];
	CK_ULONG sealed_length = 256, opened_length = 256;
	OK(p11->C_EncryptInit(session, &lenient, public));
	OK(p11->C_Encrypt(session, (CK_BYTE *)"secret", 6, sealed, &sealed_length));
	OK(p11->C_DecryptInit(session, &strict, private));
	OK(p11->C_Decrypt(session, sealed, sealed_length, opened, &opened_length));
	CHECK(opened_length == 6 && memcmp(opened, "secret", 6) == 0);
}

static void both_layouts_of_gcm_parameters_work(void)
{
	struct {
		CK_BYTE *iv;
		CK_ULONG iv_length;
		CK_BYTE *aad;
		CK_ULONG aad_length, tag_bits;
	} old;
	CK_BYTE value[16] = {1}, iv[12] = {2}, data[20] = {3}, one[36], other[36];
	CK_GCM_PARAMS new = {iv, 12, 96, data, 5, 128};
	CK_MECHANISM mechanism = {CKM_AES_GCM, &new, sizeof new};
	CK_ULONG length = sizeof one;
	CK_OBJECT_HANDLE key = import_key(session, CKK_AES, value, 16);
	old.iv = iv;
	old.iv_length = 12;
	old.aad = data;
	old.aad_length = 5;
	old.tag_bits = 128;
	CHECK(sizeof old == 40 && sizeof new == 48);
	OK(p11->C_EncryptInit(session, &mechanism, key));
	OK(p11->C_Encrypt(session, data, 20, one, &length));
	CHECK(length == 36);
	mechanism.pParameter = &old;
	mechanism.ulParameterLen = sizeof old;
	OK(p11->C_EncryptInit(session, &mechanism, key));
	OK(p11->C_Encrypt(session, data, 20, other, &length));
	CHECK(memcmp(one, other, 36) == 0);
	/* Parameters may be gone or changed once the operation is initialised. */
	OK(p11->C_DecryptInit(session, &mechanism, key));
	memset(&old, 0xee, sizeof old);
	memset(iv, 0xee, sizeof iv);
	OK(p11->C_Decrypt(session, one, 36, other, &length));
	CHECK(length == 20 && memcmp(other, data, 20) == 0);
	/* In place, and overlapping by a few bytes either way. */
	for (int shift = -7; shift <= 7; shift += 7) {
		CK_BYTE room[64] = {0}, *from = room + 16, *to = from + shift;
		CK_BYTE iv2[12] = {2};
		CK_GCM_PARAMS again = {iv2, 12, 96, data, 5, 128};
		CK_MECHANISM m = {CKM_AES_GCM, &again, sizeof again};
		memcpy(from, data, 20);
		length = 40;
		OK(p11->C_EncryptInit(session, &m, key));
		OK(p11->C_Encrypt(session, from, 20, to, &length));
		CHECK(memcmp(to, one, 36) == 0);
	}
	OK(p11->C_DestroyObject(session, key));
}

/* The length of a password is a number, and was a pointer to one in old headers. */
static void both_layouts_of_pbkdf2_parameters_work(void)
{
	static const CK_BYTE expected[8] = {0x12, 0x0f, 0xb6, 0xcf, 0xfc, 0xf8, 0xb3, 0x2c};
	CK_ULONG password_length = 8, length = 32;
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_PKCS5_PBKD2_PARAMS2 new = {CKZ_SALT_SPECIFIED, "salt", 4, 1, CKP_PKCS5_PBKD2_HMAC_SHA256,
				      NULL, 0, (CK_UTF8CHAR *)"password", 8};
	CK_PKCS5_PBKD2_PARAMS old = {CKZ_SALT_SPECIFIED, "salt", 4, 1, CKP_PKCS5_PBKD2_HMAC_SHA256,
				     NULL, 0, (CK_UTF8CHAR *)"password", &password_length};
	CK_MECHANISM mechanisms[] = {{CKM_PKCS5_PBKD2, &new, sizeof new},
				     {CKM_PKCS5_PBKD2, &old, sizeof old}};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class},
				   {CKA_KEY_TYPE, &type, sizeof type},
				   {CKA_VALUE_LEN, &length, sizeof length},
				   {CKA_SENSITIVE, &no, 1},
				   {CKA_EXTRACTABLE, &yes, 1}};
	for (int i = 0; i < 2; i++) {
		CK_BYTE value[32];
		CK_ATTRIBUTE asked = {CKA_VALUE, value, sizeof value};
		CK_OBJECT_HANDLE key;
		OK(p11->C_GenerateKey(session, &mechanisms[i], template, 5, &key));
		OK(p11->C_GetAttributeValue(session, key, &asked, 1));
		CHECK(asked.ulValueLen == 32 && memcmp(value, expected, 8) == 0);
		OK(p11->C_DestroyObject(session, key));
	}
}

/* The handles of further keys go where the parameter says. */
static void further_derived_keys_are_handed_out(void)
{
	CK_BYTE value[32] = {1}, values[2][16];
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE generic = CKK_GENERIC_SECRET;
	CK_ULONG length = 16;
	CK_OBJECT_HANDLE base, first = 0, second = 0;
	CK_ATTRIBUTE bases[] = {{CKA_CLASS, &class, sizeof class},
				{CKA_KEY_TYPE, &generic, sizeof generic},
				{CKA_VALUE, value, sizeof value},
				{CKA_DERIVE, &yes, 1},
				{CKA_SENSITIVE, &no, 1},
				{CKA_EXTRACTABLE, &yes, 1}};
	CK_ATTRIBUTE derived[] = {{CKA_CLASS, &class, sizeof class},
				  {CKA_KEY_TYPE, &generic, sizeof generic},
				  {CKA_VALUE_LEN, &length, sizeof length},
				  {CKA_SENSITIVE, &no, 1},
				  {CKA_EXTRACTABLE, &yes, 1}};
	CK_SP800_108_COUNTER_FORMAT counter = {CK_FALSE, 32};
	CK_PRF_DATA_PARAM data[] = {{CK_SP800_108_ITERATION_VARIABLE, &counter, sizeof counter},
				    {CK_SP800_108_BYTE_ARRAY, "label", 5}};
	CK_DERIVED_KEY further = {derived, 5, &second};
	CK_SP800_108_KDF_PARAMS params = {CKM_SHA256_HMAC, 2, data, 1, &further};
	CK_MECHANISM mechanism = {CKM_SP800_108_COUNTER_KDF, &params, sizeof params};
	OK(p11->C_CreateObject(session, bases, 6, &base));
	OK(p11->C_DeriveKey(session, &mechanism, base, derived, 5, &first));
	CHECK(first != 0 && second != 0 && first != second);
	for (int i = 0; i < 2; i++) {
		CK_ATTRIBUTE asked = {CKA_VALUE, values[i], 16};
		OK(p11->C_GetAttributeValue(session, i ? second : first, &asked, 1));
	}
	CHECK(memcmp(values[0], values[1], 16) != 0);
	further.phKey = NULL;
	EXPECT(p11->C_DeriveKey(session, &mechanism, base, derived, 5, &first), CKR_ARGUMENTS_BAD);
}

static void copies_work_with_every_template(void)
{
	CK_OBJECT_HANDLE public, private, copy;
	CK_ATTRIBUTE none = {CKA_TOKEN, &no, 1};
	CK_MECHANISM sign = {CKM_SHA256_RSA_PKCS, NULL, 0};
	CK_BYTE signature[256];
	CK_ULONG length = sizeof signature;
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	key_pair(&public, &private, CK_TRUE);
	OK(p11->C_CopyObject(session, private, NULL, 0, &copy));
	OK(p11->C_DestroyObject(session, copy));
	OK(p11->C_CopyObject(session, private, &none, 1, &copy));
	OK(p11->C_SignInit(session, &sign, copy));
	OK(p11->C_Sign(session, signature, 10, signature, &length));
	OK(p11->C_DestroyObject(session, private));
	OK(p11->C_DestroyObject(session, public));
	OK(p11->C_Logout(session));
}

static void digest_states_can_be_saved(void)
{
	CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
	CK_BYTE state[1024], one[32], other[32];
	CK_ULONG state_length = sizeof state, length = 32;
	CK_SESSION_HANDLE second = open_session();
	OK(p11->C_DigestInit(session, &mechanism));
	OK(p11->C_DigestUpdate(session, (CK_BYTE *)"abc", 3));
	OK(p11->C_GetOperationState(session, NULL, &state_length));
	OK(p11->C_GetOperationState(session, state, &state_length));
	OK(p11->C_SetOperationState(second, state, state_length, 0, 0));
	OK(p11->C_DigestFinal(session, one, &length));
	OK(p11->C_DigestFinal(second, other, &length));
	CHECK(memcmp(one, other, 32) == 0);
	OK(p11->C_CloseSession(second));
}

static CK_BBOOL flag_of(CK_OBJECT_HANDLE object, CK_ATTRIBUTE_TYPE type)
{
	CK_BBOOL flag = 9;
	CK_ATTRIBUTE asked = {type, &flag, 1};
	OK(p11->C_GetAttributeValue(session, object, &asked, 1));
	return flag;
}

static void usage_that_a_template_leaves_out_has_useful_values(void)
{
	CK_BYTE p256[] = {6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}, point[128];
	CK_MECHANISM generate = {CKM_EC_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE params = {CKA_EC_PARAMS, p256, sizeof p256};
	CK_ATTRIBUTE asked = {CKA_EC_POINT, point, sizeof point};
	CK_OBJECT_HANDLE public, private;
	OK(p11->C_GenerateKeyPair(session, &generate, &params, 1, NULL, 0, &public, &private));
	CHECK(flag_of(private, CKA_SIGN) && flag_of(private, CKA_DERIVE));
	CHECK(!flag_of(private, CKA_UNWRAP) && flag_of(public, CKA_VERIFY));
	CHECK(!flag_of(public, CKA_WRAP));
	OK(p11->C_GetAttributeValue(session, public, &asked, 1));
	/* A DER OCTET STRING of an uncompressed point. */
	CHECK(asked.ulValueLen == 67 && point[0] == 4 && point[1] == 65 && point[2] == 4);
}

static void certificates_and_data_live_beside_keys(void)
{
	CK_OBJECT_CLASS data = CKO_DATA;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &data, sizeof data},
				   {CKA_VALUE, "hello", 5},
				   {CKA_LABEL, "greeting", 8}};
	CK_BYTE value[8];
	CK_ATTRIBUTE asked = {CKA_VALUE, value, sizeof value}, id = {CKA_UNIQUE_ID, NULL, 0};
	CK_OBJECT_HANDLE object, found;
	CK_ULONG count;
	OK(p11->C_CreateObject(session, template, 3, &object));
	OK(p11->C_GetAttributeValue(session, object, &asked, 1));
	CHECK(asked.ulValueLen == 5 && memcmp(value, "hello", 5) == 0);
	OK(p11->C_GetAttributeValue(session, object, &id, 1));
	CHECK(id.ulValueLen > 0);
	OK(p11->C_FindObjectsInit(session, &template[2], 1));
	OK(p11->C_FindObjects(session, &found, 1, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count == 1 && found == object);
}

static void parallel_functions_answer_as_the_standard_says(void)
{
	EXPECT(p11->C_GetFunctionStatus(session), CKR_FUNCTION_NOT_PARALLEL);
	EXPECT(p11->C_CancelFunction(session), CKR_FUNCTION_NOT_PARALLEL);
}

static void the_vendor_interface_explains(void)
{
	CK_INTERFACE *interface;
	METASLOT_FUNCTION_LIST *metaslot;
	METASLOT_TOKEN_STATUS status;
	METASLOT_TOKEN_COST cost;
	METASLOT_RULE rules[64];
	CK_ULONG rule_count = 0;
	CK_UTF8CHAR text[512], wrong[] = "9999";
	CK_ULONG length;
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
	CHECK(metaslot->version.major == 1 && metaslot->version.minor == 9);
	OK(metaslot->TokenStatus(0, &status));
	CHECK(status.user.ulFailures == 0 && status.user.ulLeft == 10);
	EXPECT(p11->C_Login(session, CKU_USER, wrong, 4), CKR_PIN_INCORRECT);
	length = 1;
	EXPECT(metaslot->LastError(text, &length), CKR_BUFFER_TOO_SMALL);
	OK(metaslot->LastError(text, &length));
	CHECK(length > 1);
	OK(metaslot->TokenStatus(0, &status));
	CHECK(status.user.ulFailures == 1 && status.user.ulLeft == 9);
	EXPECT(p11->C_GetSlotInfo(99, NULL), CKR_ARGUMENTS_BAD);
	length = sizeof text;
	OK(metaslot->LastError(text, &length));
	CHECK(length == 0);
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	OK(metaslot->TokenStatus(0, &status));
	CHECK(status.user.ulFailures == 0);
	OK(metaslot->TokenCost(0, &cost));
	CHECK(cost.user.ulMemory >= 65536 && cost.user.ulPasses >= 3 && cost.user.ulMicroseconds > 0);
	CHECK(cost.so.ulMemory >= 65536 && cost.so.ulPasses >= 3);
	OK(metaslot->TokenPolicy(0, NULL, &rule_count));
	CHECK(rule_count >= 20 && rule_count <= 64);
	EXPECT(metaslot->TokenPolicy(99, NULL, &rule_count), CKR_SLOT_ID_INVALID);
	OK(metaslot->TokenPolicy(0, rules, &rule_count));
	CHECK(memcmp(rules[0].name, "beyond-purpose          ", sizeof rules[0].name) == 0);
	CHECK(rules[0].bRefused == CK_TRUE && rules[0].sentence[0] != ' ');
	rule_count = 1;
	EXPECT(metaslot->TokenPolicy(0, rules, &rule_count), CKR_BUFFER_TOO_SMALL);
	OK(p11->C_Logout(session));
}

static void a_token_is_copied_and_restored_by_the_vendor_interface(void)
{
	CK_INTERFACE *interface;
	METASLOT_FUNCTION_LIST *metaslot;
	METASLOT_EXAMINED examined = {7, 7, 7, 7};
	CK_UTF8CHAR path[600], wrong[] = "9999";
	CK_ULONG length;
	struct stat file;
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
	CHECK(getcwd((char *)path, 500) != NULL);
	strcat((char *)path, "/copied.token");
	length = strlen((char *)path);
	unlink((char *)path);
	EXPECT(metaslot->CopyToken(0, CKU_USER, user_pin, 4, path, length, CK_FALSE, NULL, NULL, NULL),
	    CKR_ARGUMENTS_BAD);
	EXPECT(metaslot->CopyToken(0, CKU_USER, NULL, 4, path, length, CK_FALSE, NULL, NULL, &examined),
	    CKR_ARGUMENTS_BAD);
	EXPECT(metaslot->CopyToken(0, CKU_USER, user_pin, 4, NULL, 5, CK_FALSE, NULL, NULL, &examined),
	    CKR_ARGUMENTS_BAD);
	EXPECT(metaslot->CopyToken(99, CKU_USER, user_pin, 4, path, length, CK_FALSE, NULL, NULL, &examined),
	    CKR_SLOT_ID_INVALID);
	EXPECT(metaslot->CopyToken(0, 17, user_pin, 4, path, length, CK_FALSE, NULL, NULL, &examined),
	    CKR_USER_TYPE_INVALID);
	EXPECT(metaslot->CopyToken(0, CKU_USER, wrong, 4, path, length, CK_FALSE, NULL, NULL, &examined),
	    CKR_PIN_INCORRECT);
	CHECK(stat((char *)path, &file) != 0 && examined.ulObjects == 7);
	/* Nobody is logged in, and nobody is afterwards. */
	OK(metaslot->CopyToken(0, CKU_USER, user_pin, 4, path, length, CK_FALSE, NULL, NULL, &examined));
	CHECK(examined.ulFindings == 0);
	CHECK(stat((char *)path, &file) == 0 && (file.st_mode & 0777) == 0600 && file.st_size > 0);
	EXPECT(metaslot->CopyToken(0, CKU_USER, user_pin, 4, path, length, CK_FALSE, NULL, NULL, &examined),
	    CKR_DEVICE_ERROR);
	EXPECT(metaslot->CopyToken(0, CKU_USER, user_pin, 4, path, length, CK_TRUE, NULL, NULL, &examined),
	    CKR_DEVICE_ERROR);
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	OK(p11->C_Logout(session));
	unlink((char *)path);
}

static void a_token_gets_another_label_and_goes_by_its_officer_only(void)
{
	CK_INTERFACE *interface;
	METASLOT_FUNCTION_LIST *metaslot;
	CK_TOKEN_INFO info;
	CK_UTF8CHAR before[33] = {0}, wrong[] = "9999", other[] = "another", long_one[33];
	CK_ULONG length = 32;
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
	OK(p11->C_GetTokenInfo(0, &info));
	memcpy(before, info.label, 32);
	while (length > 0 && before[length - 1] == ' ')
		length--;
	memset(long_one, 'x', sizeof long_one);
	EXPECT(metaslot->RenameToken(0, CKU_USER, user_pin, 4, NULL, 3), CKR_ARGUMENTS_BAD);
	EXPECT(metaslot->RenameToken(0, CKU_USER, user_pin, 4, other, 0), CKR_ARGUMENTS_BAD);
	EXPECT(metaslot->RenameToken(0, CKU_USER, user_pin, 4, long_one, 33), CKR_ARGUMENTS_BAD);
	EXPECT(metaslot->RenameToken(0, CKU_USER, user_pin, 4, (CK_UTF8CHAR *)"\xff", 1), CKR_ARGUMENTS_BAD);
	EXPECT(metaslot->RenameToken(99, CKU_USER, user_pin, 4, other, 7), CKR_SLOT_ID_INVALID);
	EXPECT(metaslot->RenameToken(0, CKU_USER, wrong, 4, other, 7), CKR_PIN_INCORRECT);
	/* This process has a session: its handles would mean another token's objects. */
	EXPECT(metaslot->RemoveToken(0, CKU_USER, user_pin, 4, before, length), CKR_SESSION_EXISTS);
	EXPECT(metaslot->RemoveToken(0, CKU_SO, so_pin, 8, before, length), CKR_SESSION_EXISTS);
	OK(metaslot->RenameToken(0, CKU_USER, user_pin, 4, other, 7));
	OK(p11->C_GetTokenInfo(0, &info));
	CHECK(memcmp(info.label, "another ", 8) == 0);
	OK(metaslot->RenameToken(0, CKU_USER, user_pin, 4, before, length));
	OK(p11->C_GetTokenInfo(0, &info));
	CHECK(memcmp(info.label, before, 32) == 0);
	/* Nobody is logged in. */
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	OK(p11->C_Logout(session));
}

static volatile int generating;

static void *generate_for_long(void *unused)
{
	CK_MECHANISM generate = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
	CK_ULONG bits = 4096;
	CK_ATTRIBUTE size = {CKA_MODULUS_BITS, &bits, sizeof bits};
	CK_OBJECT_HANDLE public, private;
	(void)unused;
	for (int i = 0; i < 3; i++) {
		generating = 1;
		OK(p11->C_GenerateKeyPair(session, &generate, &size, 1, NULL, 0, &public, &private));
	}
	generating = 2;
	return NULL;
}

/* It answers while another thread's call has the session. */
static void session_info_takes_no_lock(void)
{
	CK_SESSION_INFO info;
	pthread_t thread;
	int answered = 0;
	generating = 0;
	CHECK(pthread_create(&thread, NULL, generate_for_long, NULL) == 0);
	while (generating == 0) sched_yield();
	while (generating == 1) {
		OK(p11->C_GetSessionInfo(session, &info));
		answered += generating == 1;
	}
	pthread_join(thread, NULL);
	CHECK(answered > 1000);
}

static void no_thread_is_made(void)
{
	int threads = 0;
	DIR *directory = opendir("/proc/self/task");
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
		threads += entry->d_name[0] != '.';
	closedir(directory);
	CHECK(threads == 1);
}

static void initialization_costs_microseconds(void)
{
	unsigned long best;
	OK(p11->C_Finalize(NULL));
	SHORTEST(best, {
		OK(p11->C_Initialize(NULL));
		OK(p11->C_Finalize(NULL));
	});
	printf("C_Initialize and C_Finalize: %lu ns\n", best);
	CHECK(best < 50000);
}

int main(void)
{
	alarm(120);
	load();
	initialization_accepts_what_hosts_pass();
	interfaces_are_found_by_name_version_and_flags();
	OK(p11->C_Initialize(NULL));
	slots_are_small_and_stable();
	session = open_session();
	session_objects_need_no_login();
	attributes_are_filled_as_far_as_they_exist();
	a_length_query_does_no_cryptography();
	both_layouts_of_gcm_parameters_work();
	both_layouts_of_pbkdf2_parameters_work();
	further_derived_keys_are_handed_out();
	digest_states_can_be_saved();
	usage_that_a_template_leaves_out_has_useful_values();
	certificates_and_data_live_beside_keys();
	parallel_functions_answer_as_the_standard_says();
	OK(p11->C_CloseSession(session));
	make_token();
	session = open_session();
	copies_work_with_every_template();
	the_vendor_interface_explains();
	a_token_is_copied_and_restored_by_the_vendor_interface();
	a_token_gets_another_label_and_goes_by_its_officer_only();
	session_info_takes_no_lock();
	no_thread_is_made();
	initialization_costs_microseconds();
	return 0;
}
