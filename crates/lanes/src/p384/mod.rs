// SPDX-License-Identifier: Apache-2.0
//! P-384.
