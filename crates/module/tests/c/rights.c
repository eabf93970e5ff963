/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration comes to: the descriptions of the slots, a line each. */
#include "common.h"

int main(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	CK_SLOT_ID slots[16];
	CK_ULONG count = 16;
	OK(p11->C_GetSlotList(CK_FALSE, slots, &count));
	for (CK_ULONG i = 0; i < count; i++) {
		CK_SLOT_INFO info;
		OK(p11->C_GetSlotInfo(slots[i], &info));
		printf("%.*s\n", (int)sizeof info.slotDescription, info.slotDescription);
	}
	fflush(stdout);
	OK(p11->C_Finalize(NULL));
	return 0;
}
