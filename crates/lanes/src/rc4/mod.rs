// SPDX-License-Identifier: Apache-2.0
//! RC4 with 32-bit state, and interleaved streams.
