/* SPDX-License-Identifier: Apache-2.0 */
/* New groups are objects whose attributes make pairs; a seed is told where there is room for it, and gives a base. By default none is made. */
#include "common.h"

static CK_SESSION_HANDLE session;
static CK_BYTE prime[512], order[64], base[512];
static CK_ULONG lengths[3];

static CK_RV make(CK_MECHANISM_TYPE type, void *params, CK_ULONG length, CK_ATTRIBUTE *template, CK_ULONG count,
		  CK_OBJECT_HANDLE *made)
{
	CK_MECHANISM mechanism = {type, params, length};
	return p11->C_GenerateKey(session, &mechanism, template, count, made);
}

/* What a group shows; how many of its three numbers. */
static void read_group(CK_OBJECT_HANDLE group, CK_KEY_TYPE type, CK_BBOOL local, int count)
{
	CK_OBJECT_CLASS class = 0;
	CK_KEY_TYPE of = 0;
	CK_BBOOL is_local = 2, is_private = 2;
	CK_ULONG bits = 0;
	CK_ATTRIBUTE shown[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &of, sizeof of},
				{CKA_LOCAL, &is_local, 1},	   {CKA_PRIVATE, &is_private, 1},
				{CKA_PRIME_BITS, &bits, sizeof bits}, {CKA_PRIME, prime, sizeof prime}};
	OK(p11->C_GetAttributeValue(session, group, shown, 6));
	CHECK(class == CKO_DOMAIN_PARAMETERS && of == type && is_local == local && !is_private);
	lengths[0] = shown[5].ulValueLen;
	CHECK(bits == lengths[0] * 8);
	CK_ATTRIBUTE more[] = {{CKA_BASE, base, sizeof base}, {CKA_SUBPRIME, order, sizeof order}};
	CK_RV rv = p11->C_GetAttributeValue(session, group, more, 2);
	CHECK((rv == CKR_OK) == (count == 3));
	lengths[1] = more[0].ulValueLen;
	lengths[2] = more[1].ulValueLen;
}

static void pair(CK_MECHANISM_TYPE type, CK_ULONG count)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_PRIME, prime, lengths[0]}, {CKA_BASE, base, lengths[1]}, {CKA_SUBPRIME, order, lengths[2]}};
	CK_OBJECT_HANDLE keys[2];
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, count, NULL, 0, &keys[0], &keys[1]));
}

static void groups(void)
{
	CK_ULONG bits = 512, short_bits = 192;
	CK_OBJECT_HANDLE group, again;
	CK_ATTRIBUTE template[] = {{CKA_PRIME_BITS, &bits, sizeof bits}, {CKA_SUBPRIME_BITS, &short_bits, sizeof short_bits},
				   {CKA_TOKEN, &yes, 1}};
	OK(make(CKM_X9_42_DH_PARAMETER_GEN, NULL, 0, template, 3, &group));
	read_group(group, CKK_X9_42_DH, CK_TRUE, 3);
	CHECK(lengths[2] == 24);
	pair(CKM_X9_42_DH_KEY_PAIR_GEN, 3);
	EXPECT(make(CKM_DSA_PARAMETER_GEN, NULL, 0, template, 2, &group), CKR_ATTRIBUTE_VALUE_INVALID);
	OK(make(CKM_DSA_PARAMETER_GEN, NULL, 0, template, 1, &group));
	read_group(group, CKK_DSA, CK_TRUE, 3);
	CHECK(lengths[2] == 20);
	pair(CKM_DSA_KEY_PAIR_GEN, 3);

	/* The same brought. */
	CK_OBJECT_CLASS class = CKO_DOMAIN_PARAMETERS;
	CK_KEY_TYPE type = CKK_DSA;
	CK_ATTRIBUTE brought[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
				  {CKA_PRIME, prime, lengths[0]},    {CKA_SUBPRIME, order, lengths[2]},
				  {CKA_BASE, base, lengths[1]}};
	OK(p11->C_CreateObject(session, brought, 5, &again));
	read_group(again, CKK_DSA, CK_FALSE, 3);
	EXPECT(p11->C_CreateObject(session, brought, 4, &again), CKR_TEMPLATE_INCOMPLETE);
	base[lengths[1] - 1] ^= 1;
	EXPECT(p11->C_CreateObject(session, brought, 5, &again), CKR_ATTRIBUTE_VALUE_INVALID);

	OK(make(CKM_DH_PKCS_PARAMETER_GEN, NULL, 0, template, 1, &group));
	read_group(group, CKK_DH, CK_TRUE, 2);
	pair(CKM_DH_PKCS_KEY_PAIR_GEN, 2);
	/* PKCS #3 says no order. */
	template[1] = (CK_ATTRIBUTE){CKA_SUBPRIME, order, 20};
	EXPECT(make(CKM_DH_PKCS_PARAMETER_GEN, NULL, 0, template, 2, &group), CKR_TEMPLATE_INCONSISTENT);
	template[1] = (CK_ATTRIBUTE){CKA_SUBPRIME_BITS, &short_bits, sizeof short_bits};
	EXPECT(make(CKM_DH_PKCS_PARAMETER_GEN, NULL, 0, template, 2, &group), CKR_TEMPLATE_INCONSISTENT);
	template[1] = (CK_ATTRIBUTE){CKA_SENSITIVE, &yes, 1};
	EXPECT(make(CKM_DH_PKCS_PARAMETER_GEN, NULL, 0, template, 2, &group), CKR_TEMPLATE_INCONSISTENT);
}

/* Primes with their seed, and a base of it, which comes again. */
static void seeds(CK_MECHANISM_TYPE type, CK_ULONG expected)
{
	CK_BYTE seed[100], first[512];
	CK_ULONG bits = 512;
	CK_OBJECT_HANDLE group;
	CK_DSA_PARAMETER_GEN_PARAM params = {CKM_SHA256, seed, expected - 1, 0};
	CK_ATTRIBUTE template[] = {{CKA_PRIME_BITS, &bits, sizeof bits}};
	EXPECT(make(type, &params, sizeof params, template, 1, &group), CKR_MECHANISM_PARAM_INVALID);
	params.pSeed = NULL;
	EXPECT(make(type, &params, sizeof params, template, 1, &group), CKR_MECHANISM_PARAM_INVALID);
	EXPECT(make(type, NULL, 0, template, 1, &group), CKR_MECHANISM_PARAM_INVALID);
	/* Nothing is made whose seed has no place. */
	CK_OBJECT_CLASS class = CKO_DOMAIN_PARAMETERS;
	CK_ATTRIBUTE query = {CKA_CLASS, &class, sizeof class};
	CK_OBJECT_HANDLE there[2][50];
	CK_ULONG counts[2];
	for (int at = 0; at < 2; at++) {
		OK(p11->C_FindObjectsInit(session, &query, 1));
		OK(p11->C_FindObjects(session, there[at], 50, &counts[at]));
		OK(p11->C_FindObjectsFinal(session));
		params.pSeed = (CK_BYTE *)~3UL;
		params.ulSeedLen = sizeof seed;
		EXPECT(make(type, &params, sizeof params, template, 1, &group), CKR_MECHANISM_PARAM_INVALID);
	}
	CHECK(counts[0] == counts[1]);
	params.pSeed = seed;
	params.ulSeedLen = sizeof seed;
	OK(make(type, &params, sizeof params, template, 1, &group));
	CHECK(params.ulSeedLen == expected);
	read_group(group, CKK_DSA, CK_TRUE, 2);
	CK_ATTRIBUTE of[] = {{CKA_PRIME, prime, lengths[0]}, {CKA_SUBPRIME, order, 20}};
	params.ulIndex = 3;
	OK(make(CKM_DSA_FIPS_G_GEN, &params, sizeof params, of, 2, &group));
	read_group(group, CKK_DSA, CK_TRUE, 3);
	memcpy(first, base, lengths[1]);
	OK(make(CKM_DSA_FIPS_G_GEN, &params, sizeof params, of, 2, &group));
	read_group(group, CKK_DSA, CK_TRUE, 3);
	CHECK(memcmp(first, base, lengths[1]) == 0);
	pair(CKM_DSA_KEY_PAIR_GEN, 3);
	/* Primes they are, and short: 4007 is twice 2003 and 1. */
	CK_BYTE short_prime[] = {0x0f, 0xa7}, short_order[] = {0x07, 0xd3};
	CK_ATTRIBUTE too_short[] = {{CKA_PRIME, short_prime, 2}, {CKA_SUBPRIME, short_order, 2}};
	EXPECT(make(CKM_DSA_FIPS_G_GEN, &params, sizeof params, too_short, 2, &group), CKR_ATTRIBUTE_VALUE_INVALID);
}

int main(int argc, char **argv)
{
	CK_ULONG bits = 512;
	CK_OBJECT_HANDLE group;
	CK_ATTRIBUTE template = {CKA_PRIME_BITS, &bits, sizeof bits};
	(void)argv;
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	session = open_session();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	if (argc == 1) {
		CK_MECHANISM_TYPE all[] = {CKM_DSA_PARAMETER_GEN, CKM_DH_PKCS_PARAMETER_GEN, CKM_X9_42_DH_PARAMETER_GEN};
		for (int at = 0; at < 3; at++)
			EXPECT(make(all[at], NULL, 0, &template, 1, &group), CKR_MECHANISM_INVALID);
	} else {
		groups();
		seeds(CKM_DSA_PROBABLISTIC_PARAMETER_GEN, 20);
		seeds(CKM_DSA_SHAWE_TAYLOR_PARAMETER_GEN, 60);
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
