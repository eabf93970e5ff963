#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the virtual machine of `cargo xtask kernel`.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
# What the kernel calls to load a module.
ln -s /bin/busybox /sbin/modprobe
depmod

well=yes
fails() {
    echo "FAILED: $*"
    well=no
}
# Runs a command as a script does, not as a person at a terminal.
run() {
    echo "\$ $*"
    "$@" > /tmp/said 2>&1 < /dev/null || fails "$*"
    cat /tmp/said
}

export HOME=/tmp METASLOT_MODULE=/bin/libmetaslot.so METASLOT_CONF=/tmp/metaslot.toml METASLOT_TEST_KERNEL=all
printf '[[token]]\npath = "/tmp/token.db"\nkdf = "weak-for-tests"\n' > $METASLOT_CONF

# Nothing is loaded before it is wanted, and then each module when something asks for it.
run metaslot provider list
grep alg /proc/modules && fails "modules are loaded although the provider is not wanted"
printf '[provider.kernel]\n' >> $METASLOT_CONF
run metaslot provider list
grep '^kernel  *35 *$' /tmp/said || fails "something is missing"
for mechanism in sha256 sha3-512-hmac aes-cmac aes-cbc-pad aes-ctr aes-gcm; do
    run metaslot provider test $mechanism
    grep '^kernel' /tmp/said || fails "it was not tested"
done
# Alone it does what it has.
run metaslot provider disable lanes
run metaslot provider disable awslc sha256
run metaslot explain sha256
echo -n abc > /tmp/abc
run metaslot digest -a sha256 /tmp/abc
grep ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad /tmp/said || fails "it is another digest"

for test in /tests/*; do
    # The kernel has no part in this one, which takes the longest.
    run "$test" --quiet --skip pbkdf2
done
cut -d' ' -f1 /proc/modules | sort | tr '\n' ' '
echo
[ $well = yes ] && echo "metaslot: all is well"
reboot -f
