/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of one-time keys, of any kind: HSS with two trees, XMSS of 10 levels, XMSS^MT of 20 levels in four layers. A key of one-time passwords
 * (HOTP) is one, too, which signs no data. */
#ifndef ONE_TIME_H
#define ONE_TIME_H

#include "common.h"

static CK_MECHANISM one_time = {CKM_HSS, NULL, 0};
static CK_OBJECT_CLASS signing = CKO_PRIVATE_KEY;

static inline void choose(const char *kind)
{
	if (strcmp(kind, "xmss") == 0) one_time.mechanism = CKM_XMSS;
	else if (strcmp(kind, "xmssmt") == 0) one_time.mechanism = CKM_XMSSMT;
	else if (strcmp(kind, "hotp") == 0) {
		one_time.mechanism = CKM_HOTP;
		signing = CKO_OTP_KEY;
	} else CHECK(strcmp(kind, "hss") == 0);
}

/* Signs a message, or nothing. */
static inline CK_RV sign_once(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key, void *message, CK_ULONG length, CK_BYTE *signature,
			      CK_ULONG *room)
{
	CK_RV rv = p11->C_SignInit(session, &one_time, key);
	if (rv != CKR_OK) return rv;
	return p11->C_Sign(session, message, one_time.mechanism == CKM_HOTP ? 0 : length, signature, room);
}

/* On the token, with a label and, for HSS, trees from the top. */
static inline CK_RV make_one_time(CK_SESSION_HANDLE session, const char *label, CK_ULONG levels, CK_ULONG *trees, CK_ULONG *chains,
				  CK_OBJECT_HANDLE keys[2])
{
	CK_BBOOL hss = one_time.mechanism == CKM_HSS;
	CK_MECHANISM passwords = {CKM_HOTP_KEY_GEN, NULL, 0};
	CK_MECHANISM pair = {hss ? CKM_HSS_KEY_PAIR_GEN
			     : one_time.mechanism == CKM_XMSS ? CKM_XMSS_KEY_PAIR_GEN : CKM_XMSSMT_KEY_PAIR_GEN, NULL, 0};
	/* SHA2_10_192 and SHA2_20/4_192 */
	CK_ULONG set = one_time.mechanism == CKM_XMSS ? 0x0d : 0x22;
	CK_ATTRIBUTE public[] = {{CKA_TOKEN, &yes, 1}, {CKA_LABEL, (void *)label, strlen(label)},
				 {CKA_PARAMETER_SET, &set, sizeof(set)}};
	CK_ATTRIBUTE private[] = {{CKA_TOKEN, &yes, 1}, {CKA_LABEL, (void *)label, strlen(label)},
				  {CKA_HSS_LMS_TYPES, trees, levels * sizeof(*trees)},
				  {CKA_HSS_LMOTS_TYPES, chains, levels * sizeof(*chains)}};
	if (one_time.mechanism == CKM_HOTP) return p11->C_GenerateKey(session, &passwords, private, 2, keys + 1);
	return p11->C_GenerateKeyPair(session, &pair, public, hss ? 2 : 3, private, hss ? 4 : 2, keys, keys + 1);
}

/* The one object of a class with a label. */
static inline CK_OBJECT_HANDLE find_labelled(CK_SESSION_HANDLE session, CK_OBJECT_CLASS class, const char *label)
{
	CK_ATTRIBUTE query[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_LABEL, (void *)label, strlen(label)}};
	CK_OBJECT_HANDLE key;
	CK_ULONG found;
	OK(p11->C_FindObjectsInit(session, query, 2));
	OK(p11->C_FindObjects(session, &key, 1, &found));
	CHECK(found == 1);
	OK(p11->C_FindObjectsFinal(session));
	return key;
}

static inline CK_ULONG big_endian(const CK_BYTE *bytes, int length)
{
	CK_ULONG number = 0;
	for (int at = 0; at < length; at++) number = number << 8 | bytes[at];
	return number;
}

/* Which one-time key signed, or which password it is of six digits: of HSS with one tree, or with two whose upper signature and lower key
 * are so long together. */
static inline CK_ULONG number_in(const CK_BYTE *signature, CK_ULONG upper)
{
	if (one_time.mechanism == CKM_XMSS) return big_endian(signature, 4);
	if (one_time.mechanism == CKM_XMSSMT) return big_endian(signature, 3);
	if (one_time.mechanism == CKM_HOTP)
		return big_endian(signature + sizeof(CK_OTP_SIGNATURE_INFO) + 2 * sizeof(CK_OTP_PARAM) + 6, 8);
	CK_ULONG first = big_endian(signature + 4, 4);
	if (upper == 0) return first;
	const CK_BYTE *lower = signature + 4 + upper;
	/* Behind 1 + 26 hashes of 24 bytes stands the tree's type: 10 has 5 levels, and 11 has 10 (RFC 8554, SP 800-208). */
	CK_ULONG levels = 5 * (big_endian(lower + 8 + 24 * (1 + 26), 4) - 9);
	return first << levels | big_endian(lower, 4);
}

#endif
