// SPDX-License-Identifier: Apache-2.0
//! Builds OpenSSL's libcrypto, once for all profiles: in the target directory, beside them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "library")]
    library::link();
}

#[cfg(feature = "library")]
mod library {
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// What the provider does not use is not built. Nothing is read from a file, nothing is registered for the process's end,
    /// no thread is made; random bytes come from the caller's source.
    const OPTIONS: &str = "\
        no-shared no-dso no-module no-legacy no-apps no-tests no-docs no-makedepend \
        no-autoload-config no-atexit no-posix-io no-sock no-ui-console no-secure-memory \
        no-async no-err no-thread-pool no-rdrand --with-rand-seed=none \
        no-tls no-dtls no-quic no-ech no-srp no-srtp no-psk no-ct no-cms no-cmp no-ts no-http no-comp no-rfc3779 \
        no-aria no-bf no-blake2 no-camellia no-cast no-des no-gost no-idea no-md4 no-mdc2 no-rc2 no-rc4 no-seed no-sm2 no-sm3 no-sm4 no-whirlpool \
        no-dh no-dsa no-ml-dsa no-ml-kem no-slh-dsa no-argon2 no-scrypt no-siphash no-siv no-ocb no-multiblock \
        no-hmac-drbg-kdf no-kbkdf no-krb5kdf no-pvkkdf no-snmpkdf no-srtpkdf no-sshkdf no-x942kdf no-x963kdf \
        --prefix=/nonexistent --openssldir=/nonexistent -O2 -fvisibility=hidden -ffunction-sections -fdata-sections";

    /// AES-GCM by AVX-512, which would be a third of the library: AWS-LC has the same code.
    const LEFT_OUT: &str = "crypto/modes/aes-gcm-avx512.s";

    pub(crate) fn link() {
        let home = beside_the_profiles();
        let library = home.join("libcrypto.a");
        fs::create_dir_all(&home).expect("make a directory");
        // Two builds at once: the second waits, and finds what the first has made.
        let lock = File::create(home.join("lock")).expect("make a lock file");
        lock.lock().expect("lock it");
        let stamp = format!("{}\n{}\n{OPTIONS}\n{LEFT_OUT}\n", openssl_src::version(), target());
        let built = fs::read_to_string(home.join("stamp")).is_ok_and(|text| text == stamp);
        if !(built && library.is_file()) {
            build(&home.join("build"), &library);
            fs::write(home.join("stamp"), stamp).expect("write the stamp");
        }
        println!("cargo::rerun-if-changed={}", library.display());
        println!("cargo::rustc-link-search=native={}", home.display());
        println!("cargo::rustc-link-lib=static=crypto");
    }

    /// `target/openssl`, or `target/TRIPLE/openssl`.
    fn beside_the_profiles() -> PathBuf {
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
        // PROFILE/build/PACKAGE/out
        out.ancestors().nth(4).expect("it is that deep").join("openssl")
    }

    /// What OpenSSL calls the machine.
    fn target() -> &'static str {
        match std::env::var("TARGET").expect("Cargo sets it").as_str() {
            "x86_64-unknown-linux-gnu" => "linux-x86_64",
            "aarch64-unknown-linux-gnu" => "linux-aarch64",
            other => panic!("OpenSSL is not built for {other} here"),
        }
    }

    fn build(directory: &Path, library: &Path) {
        drop(fs::remove_dir_all(directory));
        fs::create_dir_all(directory).expect("make a directory");
        // In the tree of the source the names of its files, which stay in the library, are short and the same everywhere.
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(openssl_src::source_dir().join(".")).arg(".");
        run(copy.current_dir(directory), "copy.log");
        let mut perl = Command::new("perl");
        perl.arg("Configure").arg(target()).args(OPTIONS.split_whitespace());
        run(perl.current_dir(directory), "configure.log");
        leave_out(directory);
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        for goal in ["build_generated", "libcrypto.a"] {
            let mut make = Command::new("make");
            // Who calls make to call Cargo does not mean this one.
            make.env_remove("MAKEFLAGS").env_remove("MFLAGS");
            run(make.arg(format!("-j{jobs}")).arg(goal).current_dir(directory), "make.log");
        }
        fs::rename(directory.join("libcrypto.a"), library).expect("take the library");
        fs::remove_dir_all(directory).expect("remove what was only built for it");
    }

    /// The script asks the compiler how old the assembler is; where that does not know the instructions, the script writes functions
    /// that say so. Make finds what it wrote.
    fn leave_out(directory: &Path) {
        if target() == "linux-x86_64" {
            let mut perl = Command::new("perl");
            perl.args(["crypto/modes/asm/aes-gcm-avx512.pl", "elf", LEFT_OUT]);
            perl.env("CC", "echo GNU assembler version 2.20 #");
            run(perl.current_dir(directory), "leave_out.log");
        }
    }

    fn run(command: &mut Command, log: &str) {
        let program = command.get_program().to_owned();
        let path = command.get_current_dir().expect("it is set").join(log);
        let file = File::create(&path).expect("make a log");
        let errors = file.try_clone().expect("a second handle of the log");
        let status = command.stdout(file).stderr(errors).status();
        let status = status.unwrap_or_else(|error| {
            panic!(
                "OpenSSL needs perl and make to be built, and {program:?} cannot be run: {error}"
            )
        });
        if !status.success() {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(30)..].join("\n");
            panic!("OpenSSL is not built ({command:?}: {status}):\n{end}");
        }
    }
}
