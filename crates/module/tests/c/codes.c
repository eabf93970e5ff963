/* SPDX-License-Identifier: Apache-2.0 */
/* Which code a wrong call answers: one that is in the list of its function (PKCS#11 3.2 §5.6 to §5.18), and the most exact. */
#include "common.h"

static CK_SESSION_HANDLE session;
static CK_OBJECT_CLASS data_class = CKO_DATA, secret_class = CKO_SECRET_KEY, certificate_class = CKO_CERTIFICATE;
static CK_KEY_TYPE aes_type = CKK_AES, generic_type = CKK_GENERIC_SECRET, des3_type = CKK_DES3;
static CK_MECHANISM aes_gen = {CKM_AES_KEY_GEN, NULL, 0}, generic_gen = {CKM_GENERIC_SECRET_KEY_GEN, NULL, 0},
		    key_wrap = {CKM_AES_KEY_WRAP, NULL, 0}, wrap_pad = {CKM_AES_KEY_WRAP_KWP, NULL, 0},
		    rsa_gen = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0}, ec_gen = {CKM_EC_KEY_PAIR_GEN, NULL, 0};
static CK_BYTE out[4096];
static CK_ULONG length;

#define COUNT(template) (sizeof(template) / sizeof *(template))

/* A readable secret key that may do everything; `more` comes first. */
static CK_OBJECT_HANDLE generate(CK_MECHANISM *mechanism, CK_ULONG size, CK_ATTRIBUTE *more)
{
	CK_OBJECT_HANDLE key = 0;
	CK_ATTRIBUTE template[] = {
		*more,
		{CKA_VALUE_LEN, &size, sizeof size}, {CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1},
		{CKA_WRAP, &yes, 1}, {CKA_UNWRAP, &yes, 1}, {CKA_ENCRYPT, &yes, 1}, {CKA_DECRYPT, &yes, 1},
		{CKA_DERIVE, &yes, 1},
	};
	OK(p11->C_GenerateKey(session, mechanism, template, COUNT(template), &key));
	return key;
}

static CK_OBJECT_HANDLE plain(CK_MECHANISM *mechanism, CK_ULONG size)
{
	return generate(mechanism, size, &(CK_ATTRIBUTE){CKA_TOKEN, &no, 1});
}

static CK_RV wrap(CK_MECHANISM *mechanism, CK_OBJECT_HANDLE by, CK_OBJECT_HANDLE key)
{
	length = sizeof out;
	return p11->C_WrapKey(session, mechanism, by, key, out, &length);
}

static CK_RV unwrap(CK_MECHANISM *mechanism, CK_OBJECT_HANDLE by, CK_KEY_TYPE *type)
{
	CK_OBJECT_HANDLE key;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret_class, sizeof secret_class}, {CKA_KEY_TYPE, type, sizeof *type}};
	return p11->C_UnwrapKey(session, mechanism, by, out, length, template, COUNT(template), &key);
}

static void wrapping_keys_are_named(void)
{
	CK_OBJECT_HANDLE aes = plain(&aes_gen, 32), generic = plain(&generic_gen, 32), wants;
	CK_ATTRIBUTE wanted[] = {{CKA_KEY_TYPE, &aes_type, sizeof aes_type}};
	EXPECT(wrap(&key_wrap, generic, aes), CKR_WRAPPING_KEY_TYPE_INCONSISTENT);
	EXPECT(wrap(&key_wrap, 12345, aes), CKR_WRAPPING_KEY_HANDLE_INVALID);
	EXPECT(wrap(&key_wrap, aes, 12345), CKR_KEY_HANDLE_INVALID);
	OK(wrap(&key_wrap, aes, aes));
	EXPECT(unwrap(&key_wrap, generic, &aes_type), CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT);
	EXPECT(unwrap(&key_wrap, 12345, &aes_type), CKR_UNWRAPPING_KEY_HANDLE_INVALID);
	EXPECT(unwrap(&key_wrap, aes, &des3_type), CKR_WRAPPED_KEY_LEN_RANGE);
	wants = generate(&aes_gen, 32, &(CK_ATTRIBUTE){CKA_WRAP_TEMPLATE, wanted, sizeof wanted});
	OK(wrap(&wrap_pad, wants, aes));
	EXPECT(wrap(&wrap_pad, wants, generic), CKR_KEY_HANDLE_INVALID);
}

/* Brings `value` as a key, wraps it, and unwraps it with its length or without one: what comes back is `value` and so many zeros. */
static CK_RV around(CK_MECHANISM *mechanism, CK_OBJECT_HANDLE by, CK_KEY_TYPE type, const CK_BYTE *value, CK_ULONG size, CK_BBOOL says,
		    CK_ULONG zeros)
{
	CK_OBJECT_HANDLE key, back;
	CK_BYTE shown[128], none[16] = {0};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret_class, sizeof secret_class}, {CKA_KEY_TYPE, &type, sizeof type},
				   {CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1}, {CKA_VALUE, (void *)value, size}};
	CK_ATTRIBUTE asked = {CKA_VALUE, shown, sizeof shown};
	OK(p11->C_CreateObject(session, template, 5, &key));
	OK(wrap(mechanism, by, key));
	template[4] = (CK_ATTRIBUTE){CKA_VALUE_LEN, &size, sizeof size};
	CK_RV rv = p11->C_UnwrapKey(session, mechanism, by, out, length, template, says ? 5 : 4, &back);
	if (rv != CKR_OK) return rv;
	OK(p11->C_GetAttributeValue(session, back, &asked, 1));
	CHECK(asked.ulValueLen == size + zeros && memcmp(shown, value, size) == 0 && memcmp(shown + size, none, zeros) == 0);
	return rv;
}

/* §5.18.4: what is filled with zeros is as long as the template says, where its type does not. Without either it keeps them; where
   eight or more end what ECB or CBC filled, its own among them, its length is asked for. */
static void a_length_that_nothing_tells_is_asked_for(void)
{
	CK_BYTE iv[16] = {7}, value[128];
	CK_MECHANISM ways[] = {{CKM_AES_KEY_WRAP, NULL, 0}, {CKM_AES_ECB, NULL, 0}, {CKM_AES_CBC, iv, 16}};
	CK_OBJECT_HANDLE by = plain(&aes_gen, 32);
	for (unsigned way = 0; way < COUNT(ways); way++) {
		CK_ULONG unit = way ? 16 : 8;
		for (CK_ULONG size = 9; size <= 66; size++) {
			CK_ULONG zeros = (unit - size % unit) % unit;
			memset(value, 0xa5, size);
			EXPECT(around(&ways[way], by, CKK_GENERIC_SECRET, value, size, 0, zeros), way && zeros >= 8 ? CKR_TEMPLATE_INCOMPLETE : CKR_OK);
			EXPECT(around(&ways[way], by, CKK_SHA256_HMAC, value, size, 0, zeros), way && zeros >= 8 ? CKR_TEMPLATE_INCOMPLETE : CKR_OK);
			OK(around(&ways[way], by, CKK_GENERIC_SECRET, value, size, 1, 0));
			value[size - 1] = 0;
			EXPECT(around(&ways[way], by, CKK_GENERIC_SECRET, value, size, 0, zeros), way && zeros >= 7 ? CKR_TEMPLATE_INCOMPLETE : CKR_OK);
			OK(around(&ways[way], by, CKK_GENERIC_SECRET, value, size, 1, 0));
		}
		/* The lengths of a type leave one, or do not. */
		memset(value, 0xa5, sizeof value);
		OK(around(&ways[way], by, CKK_AES, value, 16, 0, 0));
		OK(around(&ways[way], by, CKK_AES, value, 32, 0, 0));
		EXPECT(around(&ways[way], by, CKK_BLOWFISH, value, 56, 0, 0), way ? CKR_TEMPLATE_INCOMPLETE : CKR_OK);
		EXPECT(around(&ways[way], by, CKK_AES, value, 24, 0, 0), way ? CKR_TEMPLATE_INCOMPLETE : CKR_OK);
		memset(value + 24, 0, 8);
		EXPECT(around(&ways[way], by, CKK_AES, value, 32, 0, 0), way ? CKR_TEMPLATE_INCOMPLETE : CKR_OK);
		OK(around(&ways[way], by, CKK_AES, value, 32, 1, 0));
	}
	/* Of the others the form tells it. */
	memset(value, 0, sizeof value);
	OK(around(&wrap_pad, by, CKK_GENERIC_SECRET, value, 14, 0, 0));
	CK_MECHANISM padded = {CKM_AES_CBC_PAD, iv, 16};
	OK(around(&padded, by, CKK_GENERIC_SECRET, value, 31, 0, 0));
}

static CK_RV pair(CK_MECHANISM *mechanism, CK_ATTRIBUTE_TYPE type, void *value, CK_ULONG value_length)
{
	CK_OBJECT_HANDLE public, private;
	CK_ATTRIBUTE template[] = {{type, value, value_length}};
	return p11->C_GenerateKeyPair(session, mechanism, template, 1, NULL, 0, &public, &private);
}

/* §6.16.3: zeros fill the last eight bytes of what is wrapped, and nothing else may be left out of it. */
static void a_wrap_is_filled_with_zeros(void)
{
	CK_OBJECT_HANDLE aes = plain(&aes_gen, 32), key = plain(&generic_gen, 21), back, public, private;
	CK_BYTE value[24] = {0}, again[24] = {0};
	CK_ULONG size;
	CK_ATTRIBUTE shown = {CKA_VALUE, value, sizeof value};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret_class, sizeof secret_class}, {CKA_KEY_TYPE, &generic_type, sizeof generic_type},
				   {CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1}, {CKA_VALUE_LEN, &size, sizeof size}};
	OK(p11->C_GetAttributeValue(session, key, &shown, 1));
	length = sizeof out;
	OK(p11->C_WrapKey(session, &key_wrap, aes, key, out, &length));
	CHECK(length == 32);
	size = 21;
	OK(p11->C_UnwrapKey(session, &key_wrap, aes, out, length, template, COUNT(template), &back));
	shown = (CK_ATTRIBUTE){CKA_VALUE, again, sizeof again};
	OK(p11->C_GetAttributeValue(session, back, &shown, 1));
	CHECK(shown.ulValueLen == 21 && memcmp(value, again, 21) == 0);
	/* Without its length it keeps them. */
	OK(p11->C_UnwrapKey(session, &key_wrap, aes, out, length, template, COUNT(template) - 1, &back));
	shown = (CK_ATTRIBUTE){CKA_VALUE, again, sizeof again};
	OK(p11->C_GetAttributeValue(session, back, &shown, 1));
	CHECK(shown.ulValueLen == 24 && memcmp(value, again, 24) == 0);
	size = 17;
	EXPECT(p11->C_UnwrapKey(session, &key_wrap, aes, out, length, template, COUNT(template), &back),
	       CKR_WRAPPED_KEY_INVALID);
	for (size = 16; size; size--)
		EXPECT(p11->C_UnwrapKey(session, &key_wrap, aes, out, length, template, COUNT(template), &back),
		       CKR_WRAPPED_KEY_LEN_RANGE);
	/* A private key's form is of any length. */
	static CK_BYTE p256[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
	CK_OBJECT_CLASS private_class = CKO_PRIVATE_KEY;
	CK_KEY_TYPE ec = CKK_EC;
	CK_ATTRIBUTE curve[] = {{CKA_EC_PARAMS, p256, sizeof p256}}, may[] = {{CKA_EXTRACTABLE, &yes, 1}, {CKA_SENSITIVE, &no, 1}};
	CK_ATTRIBUTE arriving[] = {{CKA_CLASS, &private_class, sizeof private_class}, {CKA_KEY_TYPE, &ec, sizeof ec},
				   {CKA_SIGN, &yes, 1}};
	OK(p11->C_GenerateKeyPair(session, &ec_gen, curve, 1, may, COUNT(may), &public, &private));
	length = sizeof out;
	OK(p11->C_WrapKey(session, &key_wrap, aes, private, out, &length));
	OK(p11->C_UnwrapKey(session, &key_wrap, aes, out, length, arriving, COUNT(arriving), &back));
}

static void sizes_and_curves_are_attributes(void)
{
	static const CK_ULONG sizes[] = {0, 1, 17, 33, 1UL << 40, ~0UL}, moduli[] = {0, 8, 511, 512, 2047, 8193, ~0UL};
	static CK_BYTE unknown[] = {0x06, 0x03, 0x55, 0x04, 0x03}, explicit[] = {0x30, 0x00};
	static CK_BYTE *const malformed[] = {(CK_BYTE *)"\x06\x04\x55\x04\x03", (CK_BYTE *)"\xff\xff\xff\xff\xff"};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		CK_ULONG size = sizes[i];
		CK_OBJECT_HANDLE key;
		CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &size, sizeof size}};
		EXPECT(p11->C_GenerateKey(session, &aes_gen, template, 1, &key), CKR_ATTRIBUTE_VALUE_INVALID);
	}
	for (size_t i = 0; i < COUNT(moduli); i++) {
		CK_ULONG bits = moduli[i];
		EXPECT(pair(&rsa_gen, CKA_MODULUS_BITS, &bits, sizeof bits), CKR_ATTRIBUTE_VALUE_INVALID);
	}
	EXPECT(pair(&ec_gen, CKA_EC_PARAMS, unknown, sizeof unknown), CKR_CURVE_NOT_SUPPORTED);
	EXPECT(pair(&ec_gen, CKA_EC_PARAMS, explicit, sizeof explicit), CKR_CURVE_NOT_SUPPORTED);
	for (size_t i = 0; i < COUNT(malformed); i++)
		EXPECT(pair(&ec_gen, CKA_EC_PARAMS, malformed[i], 5), CKR_DOMAIN_PARAMS_INVALID);
	EXPECT(pair(&ec_gen, CKA_EC_PARAMS, unknown, 0), CKR_DOMAIN_PARAMS_INVALID);
}

static void parameters_have_their_form(void)
{
	CK_OBJECT_HANDLE aes = plain(&aes_gen, 32);
	CK_BYTE iv[64] = {0};
	static const CK_ULONG lengths[] = {0, 1, 11, 13, 16, 39, 47, 56};
	CK_MECHANISM gmac = {CKM_AES_GMAC, iv, 12};
	OK(p11->C_SignInit(session, &gmac, aes));
	length = sizeof out;
	OK(p11->C_Sign(session, iv, 16, out, &length));
	for (size_t i = 0; i < COUNT(lengths); i++) {
		gmac.ulParameterLen = lengths[i];
		EXPECT(p11->C_SignInit(session, &gmac, aes), CKR_MECHANISM_PARAM_INVALID);
		EXPECT(p11->C_VerifyInit(session, &gmac, aes), CKR_MECHANISM_PARAM_INVALID);
	}
}

/* §6.64: a first key has its base as the message, one that follows another as the key. */
static void a_step_of_ike_is_one_of_two(void)
{
	CK_IKE_PRF_DERIVE_PARAMS params = {.prfMechanism = CKM_SHA256_HMAC, .bDataAsKey = CK_TRUE, .bRekey = CK_TRUE,
					   .pNi = out, .ulNiLen = 16, .pNr = out, .ulNrLen = 16};
	CK_MECHANISM mechanism = {CKM_IKE_PRF_DERIVE, &params, sizeof params};
	CK_OBJECT_HANDLE base = plain(&generic_gen, 32), derived;
	params.hNewKey = base;
	EXPECT(p11->C_DeriveKey(session, &mechanism, base, NULL, 0, &derived), CKR_ARGUMENTS_BAD);
	params.bRekey = CK_FALSE;
	OK(p11->C_DeriveKey(session, &mechanism, base, NULL, 0, &derived));
	/* It is one of the PRF where nothing else is said. */
	CK_KEY_TYPE its = CKK_GENERIC_SECRET;
	CK_ATTRIBUTE asked = {CKA_KEY_TYPE, &its, sizeof its};
	OK(p11->C_GetAttributeValue(session, derived, &asked, 1));
	CHECK(its == CKK_SHA256_HMAC);
	/* The key is the whole MAC. */
	CK_ULONG size = 16;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &size, sizeof size}};
	EXPECT(p11->C_DeriveKey(session, &mechanism, base, template, 1, &derived), CKR_KEY_SIZE_RANGE);
	/* Nor has a key of IKE 1 a type that nobody says. */
	CK_IKE1_PRF_DERIVE_PARAMS first = {.prfMechanism = CKM_SHA256_HMAC, .hKeygxy = base, .pCKYi = out,
					   .ulCKYiLen = 8, .pCKYr = out, .ulCKYrLen = 8};
	CK_MECHANISM once = {CKM_IKE1_PRF_DERIVE, &first, sizeof first};
	CK_KEY_TYPE generic = CKK_GENERIC_SECRET;
	CK_ATTRIBUTE typed[] = {template[0], {CKA_KEY_TYPE, &generic, sizeof generic}};
	EXPECT(p11->C_DeriveKey(session, &once, base, typed, 1, &derived), CKR_TEMPLATE_INCOMPLETE);
	OK(p11->C_DeriveKey(session, &once, base, typed, 2, &derived));
	/* Its key is one of the PRF, and what is agreed on a generic secret. */
	CK_OBJECT_HANDLE aes = plain(&aes_gen, 32);
	CK_MECHANISM mac_gen = {CKM_SHA256_KEY_GEN, NULL, 0}, other_gen = {CKM_SHA384_KEY_GEN, NULL, 0};
	CK_OBJECT_HANDLE mac = plain(&mac_gen, 32), other = plain(&other_gen, 48);
	EXPECT(p11->C_DeriveKey(session, &once, aes, typed, 2, &derived), CKR_KEY_TYPE_INCONSISTENT);
	EXPECT(p11->C_DeriveKey(session, &once, other, typed, 2, &derived), CKR_KEY_TYPE_INCONSISTENT);
	OK(p11->C_DeriveKey(session, &once, mac, typed, 2, &derived));
	first.bHasPrevKey = CK_TRUE;
	first.hPrevKey = aes;
	OK(p11->C_DeriveKey(session, &once, mac, typed, 2, &derived));
	first.hKeygxy = aes;
	EXPECT(p11->C_DeriveKey(session, &once, mac, typed, 2, &derived), CKR_KEY_TYPE_INCONSISTENT);
	EXPECT(p11->C_DeriveKey(session, &mechanism, mac, NULL, 0, &derived), CKR_KEY_TYPE_INCONSISTENT);
	params.bDataAsKey = CK_FALSE;
	OK(p11->C_DeriveKey(session, &mechanism, mac, NULL, 0, &derived));
	EXPECT(p11->C_DeriveKey(session, &mechanism, aes, NULL, 0, &derived), CKR_KEY_TYPE_INCONSISTENT);
	/* By AES the key is one of AES, of any length, or a generic secret; by HMAC-MD5 none is made. */
	static const CK_MECHANISM_TYPE by_aes[] = {CKM_AES_CMAC, CKM_AES_XCBC_MAC};
	for (int i = 0; i < 2; i++) {
		params.prfMechanism = by_aes[i];
		OK(p11->C_DeriveKey(session, &mechanism, base, NULL, 0, &derived));
		OK(p11->C_DeriveKey(session, &mechanism, aes, NULL, 0, &derived));
		OK(p11->C_GetAttributeValue(session, derived, &asked, 1));
		CHECK(its == CKK_AES);
		EXPECT(p11->C_DeriveKey(session, &mechanism, mac, NULL, 0, &derived), CKR_KEY_TYPE_INCONSISTENT);
	}
	params.prfMechanism = CKM_MD5_HMAC;
	EXPECT(p11->C_DeriveKey(session, &mechanism, base, NULL, 0, &derived), CKR_MECHANISM_PARAM_INVALID);
	/* Nor a chain a length. */
	CK_IKE2_PRF_PLUS_DERIVE_PARAMS seeded = {.prfMechanism = CKM_SHA256_HMAC, .pSeedData = out, .ulSeedDataLen = 8};
	CK_MECHANISM chain = {CKM_IKE2_PRF_PLUS_DERIVE, &seeded, sizeof seeded};
	EXPECT(p11->C_DeriveKey(session, &chain, base, NULL, 0, &derived), CKR_TEMPLATE_INCOMPLETE);
	OK(p11->C_DeriveKey(session, &chain, base, template, 1, &derived));
	CK_IKE1_EXTENDED_DERIVE_PARAMS longer = {.prfMechanism = CKM_SHA256_HMAC, .pExtraData = out, .ulExtraDataLen = 8};
	CK_MECHANISM extended = {CKM_IKE1_EXTENDED_DERIVE, &longer, sizeof longer};
	EXPECT(p11->C_DeriveKey(session, &extended, base, NULL, 0, &derived), CKR_TEMPLATE_INCOMPLETE);
	OK(p11->C_DeriveKey(session, &extended, base, template, 1, &derived));
}

/* In bits or in bytes, as each section says. */
static void lengths_of_keys_are_in_the_units_of_the_standard(void)
{
	static const struct {
		CK_MECHANISM_TYPE mechanism;
		CK_ULONG least, most;
	} rows[] = {{CKM_GENERIC_SECRET_KEY_GEN, 8, 65536}, {CKM_SP800_108_COUNTER_KDF, 8, 65536},
		    {CKM_CHACHA20, 256, 256}, {CKM_CHACHA20_KEY_GEN, 32, 32}, {CKM_SALSA20, 256, 256},
		    {CKM_SSL3_MD5_MAC, 8, 65536}, {CKM_TLS12_MASTER_KEY_DERIVE_DH, 48, 48},
		    {CKM_TLS12_MAC, 1, 8192}, {CKM_HSS, 0, 0}, {CKM_XMSS, 0, 0}, {CKM_RC4, 8, 2048}, {CKM_AES_CBC, 16, 32}};
	for (unsigned at = 0; at < sizeof(rows) / sizeof(rows[0]); at++) {
		CK_MECHANISM_INFO info;
		CK_RV rv = p11->C_GetMechanismInfo(0, rows[at].mechanism, &info);
		if (rv == CKR_MECHANISM_INVALID) continue;
		OK(rv);
		CHECK(info.ulMinKeySize == rows[at].least && info.ulMaxKeySize == rows[at].most);
	}
}

/* An operation in parts that must see everything before it gives anything holds no more than 1 GiB. */
static void what_waits_for_its_tag_is_bounded(void)
{
	CK_OBJECT_HANDLE aes = plain(&aes_gen, 32);
	CK_BYTE iv[12] = {0}, tag[32] = {0};
	CK_GCM_PARAMS params = {iv, 12, 96, NULL, 0, 128};
	CK_MECHANISM gcm = {CKM_AES_GCM, &params, sizeof params};
	size_t large = (1UL << 32) - 1;
	CK_BYTE *zeros = mmap(NULL, large, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(zeros != MAP_FAILED);
	OK(p11->C_DecryptInit(session, &gcm, aes));
	length = sizeof out;
	EXPECT(p11->C_DecryptUpdate(session, zeros, large, out, &length), CKR_ENCRYPTED_DATA_LEN_RANGE);
	EXPECT(p11->C_DecryptFinal(session, out, &length), CKR_OPERATION_NOT_INITIALIZED);
	CHECK(munmap(zeros, large) == 0);
	OK(p11->C_DecryptInit(session, &gcm, aes));
	length = sizeof out;
	EXPECT(p11->C_Decrypt(session, tag, sizeof tag, out, &length), CKR_ENCRYPTED_DATA_INVALID);
}

/* A length that is none, over memory that is there. */
static void no_field_of_a_parameter_is_as_long_as_memory(void)
{
	CK_OBJECT_HANDLE aes = plain(&aes_gen, 32);
	CK_ULONG large = (1UL << 32) - 1;
	CK_BYTE iv[12] = {0};
	CK_BYTE *zeros = mmap(NULL, large, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(zeros != MAP_FAILED);
	CK_HKDF_PARAMS salt = {CK_TRUE, CK_TRUE, CKM_SHA256, CKF_HKDF_SALT_DATA, zeros, large, 0, NULL, 0};
	CK_HKDF_PARAMS info = {CK_FALSE, CK_TRUE, CKM_SHA256, CKF_HKDF_SALT_NULL, NULL, 0, 0, zeros, large};
	CK_GCM_PARAMS aad = {iv, 12, 96, zeros, large, 128};
	CK_MECHANISM hkdfs[] = {{CKM_HKDF_DERIVE, &salt, sizeof salt}, {CKM_HKDF_DERIVE, &info, sizeof info}};
	CK_MECHANISM gcm = {CKM_AES_GCM, &aad, sizeof aad};
	for (size_t i = 0; i < COUNT(hkdfs); i++) {
		CK_OBJECT_HANDLE made;
		EXPECT(p11->C_DeriveKey(session, &hkdfs[i], aes, NULL, 0, &made), CKR_MECHANISM_PARAM_INVALID);
	}
	EXPECT(p11->C_EncryptInit(session, &gcm, aes), CKR_MECHANISM_PARAM_INVALID);
	CHECK(munmap(zeros, large) == 0);
}

static CK_ULONG count_keys(void)
{
	static CK_OBJECT_HANDLE all[1000];
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_ATTRIBUTE query = {CKA_CLASS, &class, sizeof class};
	CK_ULONG count;
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, all, COUNT(all), &count));
	OK(p11->C_FindObjectsFinal(session));
	return count;
}

/* What is not there, or too long: each block of a result hashes label and seed. */
static void parameters_of_tls_and_of_passwords_are_looked_at_first(void)
{
	static CK_BYTE long_random[1 << 18];
	CK_ULONG bytes = 48;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &bytes, sizeof bytes}};
	CK_TLS_KDF_PARAMS params = {CKM_SHA256, (CK_BYTE *)"label", 5, {long_random, 32, long_random, 32}, NULL, 0};
	CK_MECHANISM kdf = {CKM_TLS12_KDF, &params, sizeof params}, pbe = {CKM_PBE_SHA1_DES3_EDE_CBC, NULL, sizeof(CK_PBE_PARAMS)};
	CK_MECHANISM without[] = {{CKM_TLS12_KDF, NULL, sizeof params},
				  {CKM_TLS12_MASTER_KEY_DERIVE, NULL, sizeof(CK_TLS12_MASTER_KEY_DERIVE_PARAMS)},
				  {CKM_TLS12_KEY_AND_MAC_DERIVE, NULL, sizeof(CK_TLS12_KEY_MAT_PARAMS)}};
	CK_OBJECT_HANDLE base = plain(&generic_gen, 48), made;
	for (unsigned at = 0; at < COUNT(without); at++)
		EXPECT(p11->C_DeriveKey(session, &without[at], base, template, 1, &made), CKR_MECHANISM_PARAM_INVALID);
	EXPECT(p11->C_GenerateKey(session, &pbe, NULL, 0, &made), CKR_MECHANISM_PARAM_INVALID);
	OK(p11->C_DeriveKey(session, &kdf, base, template, 1, &made));
	params.RandomInfo.ulServerRandomLen = sizeof long_random;
	EXPECT(p11->C_DeriveKey(session, &kdf, base, template, 1, &made), CKR_MECHANISM_PARAM_INVALID);
	/* No key is made whose IVs have no place. */
	CK_SSL3_KEY_MAT_OUT told = {0, 0, 0, 0, out, (CK_BYTE *)~3UL};
	CK_TLS12_KEY_MAT_PARAMS keys = {0, 128, 128, CK_FALSE, {long_random, 32, long_random, 32}, &told, CKM_SHA256};
	CK_MECHANISM connection = {CKM_TLS12_KEY_AND_MAC_DERIVE, &keys, sizeof keys};
	EXPECT(p11->C_DeriveKey(session, &connection, base, NULL, 0, NULL), CKR_MECHANISM_PARAM_INVALID);
	CHECK(told.hClientKey == 0);
	CK_PBE_PARAMS password = {(CK_BYTE *)~3UL, (CK_BYTE *)"password", 8, (CK_BYTE *)"saltsalt", 8, 1000};
	pbe.pParameter = &password;
	CK_ULONG before = count_keys();
	EXPECT(p11->C_GenerateKey(session, &pbe, NULL, 0, &made), CKR_MECHANISM_PARAM_INVALID);
	CHECK(count_keys() == before);
	/* A connection's MAC keys are limited as its keys are. */
	CK_BBOOL limited[] = {CK_FALSE, CK_TRUE, CK_TRUE};
	CK_ATTRIBUTE limits[] = {{CKA_WRAP_WITH_TRUSTED, &yes, 1}, {CKA_COPYABLE, &no, 1}, {CKA_MODIFIABLE, &no, 1}};
	CK_ATTRIBUTE shown[] = {{CKA_WRAP_WITH_TRUSTED, limited, 1}, {CKA_COPYABLE, limited + 1, 1}, {CKA_MODIFIABLE, limited + 2, 1}};
	told.pIVServer = out + 16;
	keys.ulMacSizeInBits = 160;
	OK(p11->C_DeriveKey(session, &connection, base, limits, 3, NULL));
	OK(p11->C_GetAttributeValue(session, told.hServerMacSecret, shown, 3));
	CHECK(limited[0] && !limited[1] && !limited[2]);
}

static void arguments_are_asked_for(void)
{
	CK_ULONG id;
	EXPECT(p11->C_SetOperationState(session, NULL, 0, 0, 0), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_AsyncGetID(session, (CK_UTF8CHAR *)"", &id), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_AsyncGetID(session, (CK_UTF8CHAR *)"C_Sign", &id), CKR_OPERATION_NOT_INITIALIZED);
}

static CK_RV set(CK_OBJECT_HANDLE object, CK_ATTRIBUTE_TYPE type, void *value, CK_ULONG value_length)
{
	CK_ATTRIBUTE attribute = {type, value, value_length};
	return p11->C_SetAttributeValue(session, object, &attribute, 1);
}

static void what_cannot_be_set_cannot_be_set_to_what_it_is(void)
{
	CK_OBJECT_HANDLE aes = plain(&aes_gen, 32);
	CK_MECHANISM_TYPE mechanism = CKM_AES_KEY_GEN;
	EXPECT(set(aes, CKA_KEY_GEN_MECHANISM, &mechanism, sizeof mechanism), CKR_ATTRIBUTE_READ_ONLY);
	EXPECT(set(aes, CKA_LOCAL, &yes, 1), CKR_ATTRIBUTE_READ_ONLY);
	EXPECT(set(aes, CKA_KEY_TYPE, &aes_type, sizeof aes_type), CKR_ATTRIBUTE_READ_ONLY);
	OK(set(aes, CKA_EXTRACTABLE, &yes, 1));
}

static void no_template_is_an_empty_one(void)
{
	static const CK_ATTRIBUTE_TYPE arrays[] = {CKA_WRAP_TEMPLATE, CKA_UNWRAP_TEMPLATE, CKA_DERIVE_TEMPLATE,
						   CKA_ALLOWED_MECHANISMS};
	CK_OBJECT_HANDLE aes = plain(&aes_gen, 32);
	for (size_t i = 0; i < COUNT(arrays); i++) {
		CK_ATTRIBUTE attribute = {arrays[i], NULL, 77};
		OK(p11->C_GetAttributeValue(session, aes, &attribute, 1));
		CHECK(attribute.ulValueLen == 0);
	}
}

static void a_copy_may_say_what_a_change_may(void)
{
	CK_OBJECT_HANDLE data, copy;
	CK_BYTE read[8] = {0};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &data_class, sizeof data_class}, {CKA_VALUE, "old", 3}};
	CK_ATTRIBUTE changed[] = {{CKA_VALUE, "other", 5}}, value = {CKA_VALUE, read, sizeof read};
	OK(p11->C_CreateObject(session, template, COUNT(template), &data));
	OK(p11->C_CopyObject(session, data, changed, 1, &copy));
	OK(p11->C_GetAttributeValue(session, copy, &value, 1));
	CHECK(value.ulValueLen == 5 && memcmp(read, "other", 5) == 0);
}

static void a_certificate_says_whose_it_is(void)
{
	CK_CERTIFICATE_TYPE kind = CKC_X_509;
	CK_OBJECT_HANDLE certificate;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &certificate_class, sizeof certificate_class},
		{CKA_CERTIFICATE_TYPE, &kind, sizeof kind},
		{CKA_VALUE, "\x30\x00", 2},
		{CKA_SUBJECT, "\x30\x00", 2},
	};
	EXPECT(p11->C_CreateObject(session, template, 3, &certificate), CKR_TEMPLATE_INCOMPLETE);
	OK(p11->C_CreateObject(session, template, 4, &certificate));
}

static void hkdf_gives_a_hash_where_no_length_is_said(void)
{
	CK_OBJECT_HANDLE base = plain(&generic_gen, 32), derived;
	CK_HKDF_PARAMS params = {CK_TRUE, CK_TRUE, CKM_SHA384, CKF_HKDF_SALT_NULL, NULL, 0, 0, NULL, 0};
	CK_MECHANISM hkdf = {CKM_HKDF_DERIVE, &params, sizeof params};
	CK_ULONG said = 0;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret_class, sizeof secret_class},
				   {CKA_KEY_TYPE, &generic_type, sizeof generic_type}};
	CK_ATTRIBUTE value_length = {CKA_VALUE_LEN, &said, sizeof said};
	OK(p11->C_DeriveKey(session, &hkdf, base, template, COUNT(template), &derived));
	OK(p11->C_GetAttributeValue(session, derived, &value_length, 1));
	CHECK(said == 48);
}

/* A key type that has several lengths wants one of them to be said (PKCS#11 3.2 §6.20, §6.43), and data that are too
 * short for the key are said to be (§6.17). */
static void derived_keys_have_a_length(void)
{
	CK_BYTE data[16] = {1};
	CK_ULONG said = 32;
	CK_KEY_DERIVATION_STRING_DATA string = {data, sizeof data};
	CK_MECHANISM encrypted = {CKM_AES_ECB_ENCRYPT_DATA, &string, sizeof string};
	CK_MECHANISM variable[] = {{CKM_SHA256_KEY_DERIVATION, NULL, 0}, {CKM_BLAKE2B_256_KEY_DERIVE, NULL, 0},
				   {CKM_CONCATENATE_BASE_AND_DATA, &string, sizeof string},
				   {CKM_XOR_BASE_AND_DATA, &string, sizeof string}};
	CK_OBJECT_HANDLE base = plain(&generic_gen, 16), derived;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret_class, sizeof secret_class}, {CKA_KEY_TYPE, &aes_type, sizeof aes_type},
				   {CKA_VALUE_LEN, &said, sizeof said}};
	EXPECT(p11->C_DeriveKey(session, &encrypted, plain(&aes_gen, 16), template, 3, &derived), CKR_DATA_LEN_RANGE);
	said = 16;
	for (unsigned at = 0; at < COUNT(variable); at++) {
		EXPECT(p11->C_DeriveKey(session, &variable[at], base, template, 2, &derived), CKR_TEMPLATE_INCOMPLETE);
		OK(p11->C_DeriveKey(session, &variable[at], base, template, 3, &derived));
		OK(p11->C_DeriveKey(session, &variable[at], base, template, 1, &derived));
	}
}

/* However it is made, a secret key is of a type that secret keys have. */
static void no_secret_key_is_of_a_type_of_pairs(void)
{
	CK_KEY_TYPE types[] = {CKK_RSA, CKK_EC, CKK_EC_EDWARDS, CKK_EC_MONTGOMERY, CKK_ML_KEM, CKK_ML_DSA, CKK_SLH_DSA},
		    type;
	CK_BYTE value[32] = {1}, form[40], ciphertext[768];
	CK_ULONG bytes = 32, form_length = sizeof form, set = CKP_ML_KEM_512;
	CK_PKCS5_PBKD2_PARAMS2 stretch = {CKZ_SALT_SPECIFIED, value, 16, 1000, CKP_PKCS5_PBKD2_HMAC_SHA256, NULL, 0,
					  (CK_UTF8CHAR *)"password", 8};
	CK_MECHANISM pbkdf2 = {CKM_PKCS5_PBKD2, &stretch, sizeof stretch}, kem = {CKM_ML_KEM, NULL, 0},
		     kem_gen = {CKM_ML_KEM_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE sized = {CKA_PARAMETER_SET, &set, sizeof set};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &secret_class, sizeof secret_class}, {CKA_KEY_TYPE, &type, sizeof type},
				   {CKA_VALUE, value, sizeof value}};
	CK_ATTRIBUTE long_as[] = {template[0], template[1], {CKA_VALUE_LEN, &bytes, sizeof bytes}};
	CK_OBJECT_HANDLE by = plain(&aes_gen, 32), public, private, made;
	OK(p11->C_WrapKey(session, &wrap_pad, by, plain(&aes_gen, 32), form, &form_length));
	OK(p11->C_GenerateKeyPair(session, &kem_gen, &sized, 1, NULL, 0, &public, &private));
	for (unsigned at = 0; at < COUNT(types); at++) {
		type = types[at];
		length = sizeof ciphertext;
		EXPECT(p11->C_CreateObject(session, template, 3, &made), CKR_TEMPLATE_INCONSISTENT);
		EXPECT(p11->C_GenerateKey(session, &generic_gen, long_as, 3, &made), CKR_TEMPLATE_INCONSISTENT);
		EXPECT(p11->C_GenerateKey(session, &pbkdf2, long_as, 3, &made), CKR_TEMPLATE_INCONSISTENT);
		EXPECT(p11->C_UnwrapKey(session, &wrap_pad, by, form, form_length, template, 2, &made),
		       CKR_TEMPLATE_INCONSISTENT);
		EXPECT(p11->C_EncapsulateKey(session, &kem, public, template, 2, ciphertext, &length, &made),
		       CKR_TEMPLATE_INCONSISTENT);
		EXPECT(p11->C_DecapsulateKey(session, &kem, private, template, 2, ciphertext, sizeof ciphertext, &made),
		       CKR_TEMPLATE_INCONSISTENT);
	}
	/* Nor is one of a password of a length that its type does not have. */
	type = CKK_AES;
	bytes = 20;
	EXPECT(p11->C_GenerateKey(session, &pbkdf2, long_as, 3, &made), CKR_ATTRIBUTE_VALUE_INVALID);
}

/* By the sum of the public value (PKCS#11 3.2 §4.8, §4.9), which the module makes of every pair and of every half that is brought. */
static void halves_of_a_pair_find_each_other(void)
{
	static CK_BYTE p256[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
	CK_MECHANISM ml_gen = {CKM_ML_DSA_KEY_PAIR_GEN, NULL, 0};
	CK_ULONG bits = 2048, set = CKP_ML_DSA_44, count = 0;
	CK_MECHANISM *mechanisms[] = {&rsa_gen, &ec_gen, &ml_gen};
	CK_ATTRIBUTE said[] = {{CKA_MODULUS_BITS, &bits, sizeof bits}, {CKA_EC_PARAMS, p256, sizeof p256},
			       {CKA_PARAMETER_SET, &set, sizeof set}};
	CK_BYTE value[1312], sums[2][8];
	for (int i = 0; i < 3; i++) {
		CK_OBJECT_HANDLE pair[2], found[3];
		OK(p11->C_GenerateKeyPair(session, mechanisms[i], &said[i], 1, NULL, 0, &pair[0], &pair[1]));
		for (int half = 0; half < 2; half++) {
			CK_ATTRIBUTE sum = {CKA_PUBLIC_CRC64_VALUE, sums[half], 8};
			OK(p11->C_GetAttributeValue(session, pair[half], &sum, 1));
			CHECK(sum.ulValueLen == 8);
			EXPECT(p11->C_SetAttributeValue(session, pair[half], &sum, 1), CKR_ATTRIBUTE_READ_ONLY);
		}
		CHECK(memcmp(sums[0], sums[1], 8) == 0);
		CK_ATTRIBUTE asked = {CKA_PUBLIC_CRC64_VALUE, sums[0], 8};
		OK(p11->C_FindObjectsInit(session, &asked, 1));
		OK(p11->C_FindObjects(session, found, 3, &count));
		OK(p11->C_FindObjectsFinal(session));
		CHECK(count == 2);
		if (i < 2) continue;
		/* What is brought may say it, as the standard wants, and says it rightly. */
		CK_OBJECT_CLASS class = CKO_PUBLIC_KEY;
		CK_KEY_TYPE type = CKK_ML_DSA;
		CK_ATTRIBUTE public[] = {{CKA_VALUE, value, sizeof value}, {CKA_CLASS, &class, sizeof class},
					 {CKA_KEY_TYPE, &type, sizeof type}, said[i], asked};
		OK(p11->C_GetAttributeValue(session, pair[0], public, 1));
		OK(p11->C_CreateObject(session, public, 5, &found[0]));
		EXPECT(p11->C_GenerateKeyPair(session, &ml_gen, &public[3], 2, NULL, 0, &found[0], &found[1]),
		       CKR_ATTRIBUTE_READ_ONLY);
		sums[0][7] ^= 1;
		EXPECT(p11->C_CreateObject(session, public, 5, &found[0]), CKR_ATTRIBUTE_VALUE_INVALID);
	}
}

/* PKCS#11 3.2 §6.3: the curve is that of the public half, or of the wrapped key. Who says it, too, says the same one, by either name. */
static void no_template_says_another_curve(void)
{
	static CK_BYTE p256[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07}, named[] = "\x13\x05P-256", p384[] = "\x13\x05P-384",
		       ed25519[] = {0x06, 0x03, 0x2b, 0x65, 0x70}, edwards[] = "\x13\x0c" "edwards25519";
	struct {
		CK_MECHANISM_TYPE gen;
		CK_KEY_TYPE type;
		CK_ATTRIBUTE right[2], wrong[3];
	} rows[] = {
		{CKM_EC_KEY_PAIR_GEN, CKK_EC, {{CKA_EC_PARAMS, p256, sizeof p256}, {CKA_EC_PARAMS, named, 7}},
		 {{CKA_EC_PARAMS, p384, 7}, {CKA_EC_PARAMS, ed25519, sizeof ed25519}, {CKA_EC_PARAMS, p256, 0}}},
		{CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, {{CKA_EC_PARAMS, ed25519, sizeof ed25519}, {CKA_EC_PARAMS, edwards, 14}},
		 {{CKA_EC_PARAMS, p256, sizeof p256}, {CKA_EC_PARAMS, p384, 7}, {CKA_EC_PARAMS, ed25519, 4}}},
	};
	CK_MECHANISM kwp = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
	CK_OBJECT_HANDLE by = plain(&aes_gen, 32), halves[2], back;
	for (int row = 0; row < 2; row++) {
		CK_MECHANISM gen = {rows[row].gen, NULL, 0};
		for (int at = 0; at < 5; at++) {
			CK_ATTRIBUTE *said = at < 2 ? &rows[row].right[at] : &rows[row].wrong[at - 2];
			CK_RV rv = at < 2 ? CKR_OK : CKR_TEMPLATE_INCONSISTENT;
			CK_ATTRIBUTE private[] = {*said, {CKA_EXTRACTABLE, &yes, 1}, {CKA_SENSITIVE, &no, 1}};
			CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &rows[row].type, sizeof(CK_KEY_TYPE)}, *said};
			EXPECT(p11->C_GenerateKeyPair(session, &gen, rows[row].right, 1, private, 3, &halves[0], &halves[1]), rv);
			if (rv == CKR_OK) OK(wrap(&kwp, by, halves[1]));
			EXPECT(p11->C_UnwrapKey(session, &kwp, by, out, length, template, 3, &back), rv);
		}
	}
}

int main(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	session = open_session();
	wrapping_keys_are_named();
	a_length_that_nothing_tells_is_asked_for();
	a_wrap_is_filled_with_zeros();
	sizes_and_curves_are_attributes();
	parameters_have_their_form();
	a_step_of_ike_is_one_of_two();
	lengths_of_keys_are_in_the_units_of_the_standard();
	what_waits_for_its_tag_is_bounded();
	no_field_of_a_parameter_is_as_long_as_memory();
	parameters_of_tls_and_of_passwords_are_looked_at_first();
	arguments_are_asked_for();
	what_cannot_be_set_cannot_be_set_to_what_it_is();
	no_template_is_an_empty_one();
	a_copy_may_say_what_a_change_may();
	a_certificate_says_whose_it_is();
	hkdf_gives_a_hash_where_no_length_is_said();
	derived_keys_have_a_length();
	no_secret_key_is_of_a_type_of_pairs();
	halves_of_a_pair_find_each_other();
	no_template_says_another_curve();
	OK(p11->C_Finalize(NULL));
	return 0;
}
