/* SPDX-License-Identifier: Apache-2.0 */
/* C_EncryptMessage… and C_DecryptMessage…: several messages under one key. */
#include "common.h"

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE key, on_token, other;
static CK_MECHANISM gcm_mechanism = {CKM_AES_GCM, NULL, 0};
static CK_BYTE iv[16], tag[16], text[300], sealed[300], opened[300], aad[] = "about it";
static CK_ULONG length;
static CK_GCM_MESSAGE_PARAMS gcm = {iv, 12, 0, CKG_NO_GENERATE, tag, 128};
static CK_CCM_MESSAGE_PARAMS ccm = {0, iv, 12, 0, CKG_NO_GENERATE, tag, 16};
static CK_SALSA20_CHACHA20_POLY1305_MSG_PARAMS chacha = {iv, 12, tag};
/* What is used now. */
static CK_MECHANISM_TYPE number;
static void *parameter;
static CK_ULONG parameter_length;

static CK_OBJECT_HANDLE generate(CK_MECHANISM_TYPE type, CK_BBOOL *stays)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_ULONG bytes = 32;
	CK_OBJECT_HANDLE made;
	CK_ATTRIBUTE template[] = {{CKA_TOKEN, stays, 1}, {CKA_VALUE_LEN, &bytes, sizeof(bytes)},
				   {CKA_ENCRYPT, &yes, 1}, {CKA_DECRYPT, &yes, 1}};
	OK(p11->C_GenerateKey(session, &mechanism, template, 4, &made));
	return made;
}

static CK_RV seal(CK_ULONG bytes)
{
	length = sizeof(sealed);
	ccm.ulDataLen = bytes;
	return p11->C_EncryptMessage(session, parameter, parameter_length, aad, sizeof(aad), text, bytes,
				     sealed, &length);
}

static CK_RV open_up(CK_ULONG bytes)
{
	length = sizeof(opened);
	ccm.ulDataLen = bytes;
	return p11->C_DecryptMessage(session, parameter, parameter_length, aad, sizeof(aad), sealed,
				     bytes, opened, &length);
}

static CK_RV seal_begin(void)
{
	return p11->C_EncryptMessageBegin(session, parameter, parameter_length, aad, sizeof(aad));
}

static CK_RV open_begin(void)
{
	return p11->C_DecryptMessageBegin(session, parameter, parameter_length, aad, sizeof(aad));
}

static CK_RV seal_next(CK_BYTE *part, CK_ULONG bytes, CK_BYTE *out, CK_FLAGS flags)
{
	return p11->C_EncryptMessageNext(session, parameter, parameter_length, part, bytes, out, &length,
					 flags);
}

static CK_RV open_next(CK_BYTE *part, CK_ULONG bytes, CK_BYTE *out, CK_FLAGS flags)
{
	return p11->C_DecryptMessageNext(session, parameter, parameter_length, part, bytes, out, &length,
					 flags);
}

static void use(CK_OBJECT_HANDLE with)
{
	CK_MECHANISM mechanism = {number, NULL, 0};
	OK(p11->C_MessageEncryptInit(session, &mechanism, with));
	OK(p11->C_MessageDecryptInit(session, &mechanism, with));
}

static void done(void)
{
	OK(p11->C_MessageEncryptFinal(session));
	OK(p11->C_MessageDecryptFinal(session));
}

/* What C_Encrypt makes of one message is the same, with its tag behind. */
static void same_as_one(CK_ULONG bytes)
{
	CK_GCM_PARAMS one = {iv, 12, 96, aad, sizeof(aad), 128};
	CK_MECHANISM mechanism = {CKM_AES_GCM, &one, sizeof(one)};
	CK_BYTE whole[320];
	length = sizeof(whole);
	OK(p11->C_EncryptInit(session, &mechanism, key));
	OK(p11->C_Encrypt(session, text, bytes, whole, &length));
	CHECK(length == bytes + 16 && memcmp(whole, sealed, bytes) == 0);
	CHECK(memcmp(whole + bytes, tag, 16) == 0);
}

static void whole_ones(CK_OBJECT_HANDLE with)
{
	EXPECT(seal(3), CKR_OPERATION_NOT_INITIALIZED);
	use(with);
	for (CK_ULONG bytes = 0; bytes <= sizeof(text); bytes += 50) {
		memset(tag, 0, sizeof(tag));
		OK(seal(bytes));
		CHECK(length == bytes);
		if (number == CKM_AES_GCM) same_as_one(bytes);
		memset(opened, 0, sizeof(opened));
		OK(open_up(bytes));
		CHECK(length == bytes && memcmp(opened, text, bytes) == 0);
		tag[3] ^= 1;
		EXPECT(open_up(bytes), CKR_AEAD_DECRYPT_FAILED);
		tag[3] ^= 1;
		OK(open_up(bytes));
	}
	/* A question about the length, and a short buffer, change nothing. */
	memset(tag, 7, sizeof(tag));
	ccm.ulDataLen = 20;
	OK(p11->C_EncryptMessage(session, parameter, parameter_length, NULL, 0, text, 20, NULL, &length));
	CHECK(length == 20 && tag[0] == 7 && tag[15] == 7);
	length = 19;
	EXPECT(p11->C_EncryptMessage(session, parameter, parameter_length, NULL, 0, text, 20, sealed,
				     &length), CKR_BUFFER_TOO_SMALL);
	CHECK(length == 20 && tag[0] == 7 && tag[15] == 7);
	/* In the place of its plaintext. */
	memcpy(sealed, text, 20);
	OK(p11->C_EncryptMessage(session, parameter, parameter_length, aad, sizeof(aad), sealed, 20, sealed,
				 &length));
	OK(p11->C_DecryptMessage(session, parameter, parameter_length, aad, sizeof(aad), sealed, 20, sealed,
				 &length));
	CHECK(memcmp(sealed, text, 20) == 0);
	done();
}

static void one_in_parts(CK_ULONG first, CK_ULONG rest)
{
	CK_ULONG at = 0;
	ccm.ulDataLen = first + rest;
	OK(seal_begin());
	EXPECT(p11->C_MessageEncryptFinal(session), CKR_OPERATION_ACTIVE);
	length = sizeof(sealed);
	OK(seal_next(text, first, sealed, 0));
	at = length;
	OK(seal_next(text + first, rest, NULL, CKF_END_OF_MESSAGE));
	CHECK(at + length == first + rest);
	if (length > 0) {
		length--;
		EXPECT(seal_next(text + first, rest, sealed + at, CKF_END_OF_MESSAGE), CKR_BUFFER_TOO_SMALL);
		CHECK(at + length == first + rest);
	}
	OK(seal_next(text + first, rest, sealed + at, CKF_END_OF_MESSAGE));
	CHECK(at + length == first + rest);
	EXPECT(seal_next(text, 1, sealed, 0), CKR_OPERATION_NOT_INITIALIZED);
	OK(open_up(first + rest));
	CHECK(memcmp(opened, text, first + rest) == 0);
	memset(opened, 0, sizeof(opened));
	OK(open_begin());
	length = sizeof(opened);
	OK(open_next(sealed, first, opened, 0));
	at = length;
	length = sizeof(opened) - at;
	OK(open_next(sealed + first, rest, opened + at, CKF_END_OF_MESSAGE));
	CHECK(at + length == first + rest && memcmp(opened, text, first + rest) == 0);
	OK(open_begin());
	tag[0] ^= 1;
	length = sizeof(opened);
	EXPECT(open_next(sealed, first + rest, opened, CKF_END_OF_MESSAGE), CKR_AEAD_DECRYPT_FAILED);
	EXPECT(open_next(sealed, 1, opened, 0), CKR_OPERATION_NOT_INITIALIZED);
}

static void in_parts(CK_OBJECT_HANDLE with)
{
	use(with);
	EXPECT(seal_next(text, 1, sealed, 0), CKR_OPERATION_NOT_INITIALIZED);
	one_in_parts(100, 33);
	one_in_parts(0, 5);
	one_in_parts(5, 0);
	one_in_parts(16, 16);
	/* The wrong order ends the message, and what Init chose stays. */
	OK(seal_begin());
	EXPECT(seal(3), CKR_OPERATION_ACTIVE);
	EXPECT(seal_next(text, 3, sealed, 0), CKR_OPERATION_NOT_INITIALIZED);
	OK(seal_begin());
	EXPECT(seal_begin(), CKR_OPERATION_ACTIVE);
	OK(seal_begin());
	EXPECT(seal_next(NULL, 3, sealed, 0), CKR_ARGUMENTS_BAD);
	OK(seal(3));
	OK(seal_begin());
	OK(p11->C_SessionCancel(session, CKF_ENCRYPT | CKF_DECRYPT | CKF_MESSAGE_DECRYPT));
	EXPECT(open_up(3), CKR_OPERATION_NOT_INITIALIZED);
	OK(p11->C_SessionCancel(session, CKF_MESSAGE_ENCRYPT));
	EXPECT(seal(3), CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(p11->C_MessageEncryptFinal(session), CKR_OPERATION_NOT_INITIALIZED);
}

static void each_mechanism(void)
{
	CK_OBJECT_HANDLE cha = generate(CKM_CHACHA20_KEY_GEN, &no);
	struct {
		CK_MECHANISM_TYPE number;
		void *parameter;
		CK_ULONG length;
		CK_OBJECT_HANDLE key;
	} all[] = {{CKM_AES_GCM, &gcm, sizeof(gcm), key},
		   {CKM_AES_CCM, &ccm, sizeof(ccm), key},
		   {CKM_CHACHA20_POLY1305, &chacha, sizeof(chacha), cha}};
	for (int i = 2; i >= 0; i--) {
		number = all[i].number;
		parameter = all[i].parameter;
		parameter_length = all[i].length;
		CK_MECHANISM_INFO info;
		OK(p11->C_GetMechanismInfo(0, number, &info));
		CHECK((info.flags & 0x3e) == (CKF_MESSAGE_ENCRYPT | CKF_MESSAGE_DECRYPT | CKF_MULTI_MESSAGE));
		whole_ones(all[i].key);
		in_parts(all[i].key);
	}
}

/* The standard counts the bits of a nonce (PKCS#11 3.2 §6.61), and programs its bytes. */
static void nonce_in_bits(void)
{
	CK_OBJECT_HANDLE cha = generate(CKM_CHACHA20_KEY_GEN, &no);
	CK_SALSA20_CHACHA20_POLY1305_PARAMS whole = {iv, 96, aad, sizeof(aad)};
	CK_MECHANISM mechanism = {CKM_CHACHA20_POLY1305, NULL, 0};
	parameter = &chacha;
	parameter_length = sizeof(chacha);
	OK(p11->C_MessageEncryptInit(session, &mechanism, cha));
	chacha.ulNonceLen = 96;
	OK(seal(40));
	OK(p11->C_MessageEncryptFinal(session));
	chacha.ulNonceLen = 12;
	OK(p11->C_MessageDecryptInit(session, &mechanism, cha));
	OK(open_up(40));
	CHECK(length == 40 && memcmp(opened, text, 40) == 0);
	OK(p11->C_MessageDecryptFinal(session));
	mechanism = (CK_MECHANISM){CKM_CHACHA20_POLY1305, &whole, sizeof(whole)};
	OK(p11->C_EncryptInit(session, &mechanism, cha));
	length = sizeof(opened);
	OK(p11->C_Encrypt(session, text, 40, opened, &length));
	CHECK(length == 56 && memcmp(opened, sealed, 40) == 0 && memcmp(opened + 40, tag, 16) == 0);
}

/* The parameter is of another mechanism, too short, too long, without a tag, refused by the policy. */
static void wrong_parameters(void)
{
	CK_MECHANISM cbc = {CKM_AES_CBC, iv, 16}, odd = {CKM_AES_GCM, &gcm, 7};
	EXPECT(p11->C_MessageEncryptInit(session, &cbc, key), CKR_MECHANISM_INVALID);
	EXPECT(p11->C_MessageEncryptInit(session, &odd, key), CKR_MECHANISM_PARAM_INVALID);
	odd.ulParameterLen = sizeof(gcm);
	OK(p11->C_MessageEncryptInit(session, &odd, key));
	EXPECT(p11->C_MessageEncryptInit(session, &odd, key), CKR_OPERATION_ACTIVE);
	parameter = &ccm;
	parameter_length = sizeof(ccm);
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	parameter = &gcm;
	parameter_length = sizeof(gcm) - 1;
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	parameter_length = sizeof(gcm);
	gcm.ulTagBits = 64;
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	gcm.ulTagBits = 136;
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	gcm.ulTagBits = 127;
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	gcm.ulTagBits = 128;
	gcm.ivGenerator = 9;
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	gcm.ivGenerator = CKG_GENERATE;
	gcm.ulIvFixedBits = 97;
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	gcm.ulIvFixedBits = 0;
	gcm.ivGenerator = CKG_NO_GENERATE;
	gcm.pTag = NULL;
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	gcm.pTag = tag;
	OK(seal(3));
	OK(p11->C_MessageEncryptInit(session, NULL, 0));
	EXPECT(seal(3), CKR_OPERATION_NOT_INITIALIZED);
}

/* The length of another mechanism's parameter does not make this one that: where its pointers would be are numbers. */
static void lengths_of_others(void)
{
	CK_ULONG lengths[] = {sizeof(chacha), sizeof(ccm)};
	gcm.ulIvFixedBits = 32;
	OK(p11->C_MessageEncryptInit(session, &gcm_mechanism, key));
	OK(p11->C_MessageDecryptInit(session, &gcm_mechanism, key));
	for (int i = 0; i < 2; i++) {
		parameter_length = lengths[i];
		EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
		EXPECT(seal_begin(), CKR_MECHANISM_PARAM_INVALID);
		EXPECT(open_up(3), CKR_MECHANISM_PARAM_INVALID);
		EXPECT(open_begin(), CKR_MECHANISM_PARAM_INVALID);
		parameter_length = sizeof(gcm);
		OK(open_begin());
		parameter_length = lengths[i];
		EXPECT(open_next(sealed, 3, opened, CKF_END_OF_MESSAGE), CKR_MECHANISM_PARAM_INVALID);
	}
	parameter_length = sizeof(gcm);
	gcm.ulIvFixedBits = 0;
	OK(p11->C_MessageDecryptFinal(session));
	OK(p11->C_MessageEncryptFinal(session));
}

/* The number in the last bytes of the IV. */
static uint64_t counted(void)
{
	uint64_t value = 0;
	for (int i = 4; i < 12; i++) value = value << 8 | iv[i];
	return value;
}

static void begin_counting(CK_OBJECT_HANDLE with, CK_GENERATOR_FUNCTION generator, CK_ULONG fixed)
{
	gcm.ivGenerator = generator;
	gcm.ulIvFixedBits = fixed;
	OK(p11->C_MessageEncryptInit(session, &gcm_mechanism, with));
}

static void count(CK_OBJECT_HANDLE with)
{
	begin_counting(with, CKG_GENERATE_COUNTER, 32);
	for (unsigned i = 0; i < 5; i++) {
		memset(iv, 0xaa, 12);
		OK(seal(i));
		CHECK(iv[0] == 0xaa && iv[3] == 0xaa && counted() == i);
	}
	/* What asks and what is too short takes no number, nor does what is refused. */
	OK(p11->C_EncryptMessage(session, &gcm, sizeof(gcm), NULL, 0, text, 5, NULL, &length));
	length = 4;
	EXPECT(p11->C_EncryptMessage(session, &gcm, sizeof(gcm), NULL, 0, text, 5, sealed, &length),
	       CKR_BUFFER_TOO_SMALL);
	gcm.ulTagBits = 64;
	EXPECT(seal(3), CKR_MECHANISM_PARAM_INVALID);
	gcm.ulTagBits = 128;
	OK(seal_begin());
	CHECK(counted() == 5);
	/* It goes on after Final, and for each fixed part by itself. */
	OK(p11->C_SessionCancel(session, CKF_MESSAGE_ENCRYPT));
	begin_counting(with, CKG_GENERATE_COUNTER, 32);
	OK(seal(1));
	CHECK(counted() == 6);
	memset(iv, 0xbb, 12);
	OK(seal(1));
	CHECK(counted() == 0 && iv[3] == 0xbb);
	/* The base of a counter is one for all messages, and the fixed part has one length. */
	memset(iv, 0xcc, 12);
	gcm.ivGenerator = CKG_GENERATE_COUNTER_XOR;
	OK(seal(1));
	CHECK(counted() == 0xccccccccccccccccULL);
	memset(iv, 0xcc, 12);
	OK(seal(1));
	CHECK(counted() == 0xcccccccccccccccdULL);
	EXPECT(seal(1), CKR_MECHANISM_PARAM_INVALID);
	gcm.ulIvFixedBits = 40;
	EXPECT(seal(1), CKR_MECHANISM_PARAM_INVALID);
	gcm.ulIvFixedBits = 0;
	EXPECT(seal(1), CKR_MECHANISM_PARAM_INVALID);
	/* Another length is another series, and this one ends. */
	gcm.ulIvLen = 13;
	gcm.ulIvFixedBits = 96;
	gcm.ivGenerator = CKG_GENERATE_COUNTER;
	for (unsigned i = 0; i < 256; i++) {
		OK(seal(1));
		CHECK(iv[12] == i);
	}
	iv[12] = 77;
	EXPECT(seal(1), CKR_KEY_EXHAUSTED);
	EXPECT(seal(1), CKR_KEY_EXHAUSTED);
	CHECK(iv[12] == 77);
	gcm.ulIvLen = 12;
	OK(p11->C_MessageEncryptFinal(session));
}

static void draw(CK_OBJECT_HANDLE with)
{
	CK_BYTE before[12];
	begin_counting(with, CKG_GENERATE_RANDOM, 0);
	OK(seal(1));
	memcpy(before, iv, 12);
	OK(seal(1));
	CHECK(memcmp(before, iv, 12) != 0);
	gcm.ulIvFixedBits = 8;
	EXPECT(seal(1), CKR_MECHANISM_PARAM_INVALID);
	gcm.ulIvLen = 13;
	iv[0] = 5;
	OK(seal(1));
	CHECK(iv[0] == 5);
	gcm.ulIvLen = 12;
	gcm.ulIvFixedBits = 0;
	gcm.ivGenerator = CKG_GENERATE;
	OK(seal(1));
	OK(p11->C_MessageEncryptFinal(session));
}

/* What is noted in the key's row is not shown. */
static void hidden(CK_OBJECT_HANDLE of)
{
	CK_BYTE noted[64] = {0};
	CK_ATTRIBUTE series = {CKA_VENDOR_DEFINED | 0x4d530005, noted, sizeof(noted)};
	EXPECT(p11->C_GetAttributeValue(session, of, &series, 1), CKR_ATTRIBUTE_TYPE_INVALID);
	series.ulValueLen = 11;
	EXPECT(p11->C_SetAttributeValue(session, of, &series, 1), CKR_ATTRIBUTE_READ_ONLY);
	EXPECT(p11->C_CopyObject(session, of, &series, 1, &other), CKR_ATTRIBUTE_READ_ONLY);
}

/* A copy has the same value, and does not count: it would begin where the other one began. */
static void copies(CK_OBJECT_HANDLE of)
{
	CK_ATTRIBUTE in_memory = {CKA_TOKEN, &no, 1}, stays = {CKA_TOKEN, &yes, 1};
	CK_OBJECT_HANDLE copy;
	for (int i = 0; i < 3; i++) {
		OK(p11->C_CopyObject(session, i == 1 ? copy : of, i ? &stays : &in_memory, 1, &copy));
		begin_counting(copy, CKG_GENERATE_COUNTER, 32);
		EXPECT(seal(1), CKR_MECHANISM_PARAM_INVALID);
		gcm.ivGenerator = CKG_GENERATE_COUNTER_XOR;
		EXPECT(seal(1), CKR_MECHANISM_PARAM_INVALID);
		OK(p11->C_MessageEncryptFinal(session));
		draw(copy);
	}
}

int main(void)
{
	session = begin_as_user();
	for (unsigned i = 0; i < sizeof(text); i++) text[i] = (CK_BYTE)(i * 7);
	key = generate(CKM_AES_KEY_GEN, &no);
	on_token = generate(CKM_AES_KEY_GEN, &yes);
	each_mechanism();
	nonce_in_bits();
	wrong_parameters();
	lengths_of_others();
	number = CKM_AES_GCM;
	CK_OBJECT_HANDLE keys[] = {key, on_token};
	for (int i = 0; i < 2; i++) {
		CK_UTF8CHAR label[] = "renamed";
		CK_ATTRIBUTE renamed = {CKA_LABEL, label, 7};
		count(keys[i]);
		OK(p11->C_SetAttributeValue(session, keys[i], &renamed, 1));
		draw(keys[i]);
		begin_counting(keys[i], CKG_GENERATE_COUNTER, 32);
		memset(iv, 0xaa, 12);
		OK(seal(1));
		CHECK(counted() == 7);
		OK(p11->C_MessageEncryptFinal(session));
		copies(keys[i]);
		hidden(keys[i]);
	}
	begin_counting(on_token, CKG_GENERATE_COUNTER, 32);
	OK(seal_begin());
	OK(p11->C_Finalize(NULL));
	/* Another process, and another initialisation, go on behind what this one took. */
	OK(p11->C_Initialize(NULL));
	session = user_session();
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_ATTRIBUTE query[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_LABEL, "renamed", 7}};
	CK_ULONG found;
	OK(p11->C_FindObjectsInit(session, query, 2));
	OK(p11->C_FindObjects(session, &other, 1, &found));
	CHECK(found == 1);
	OK(p11->C_FindObjectsFinal(session));
	begin_counting(other, CKG_GENERATE_COUNTER, 32);
	memset(iv, 0xaa, 12);
	OK(seal(1));
	CHECK(counted() == 1024);
	OK(p11->C_Finalize(NULL));
	return 0;
}
