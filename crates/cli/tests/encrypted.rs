// SPDX-License-Identifier: Apache-2.0
//! Encrypted files beside an independent reader and writer of the format, and under attack.

#[path = "common/sandbox.rs"]
mod sandbox;

use metaslot_testkit::copies;
use sandbox::Sandbox;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Bytes of the header, of a chunk, and of a chunk with its tag.
const HEADER: usize = 84;
const CHUNK: usize = 65536;
const SEALED: usize = CHUNK + 16;

const OPEN: &str = "metaslot decrypt -a aes -k key -i it -o opened";

struct Files {
    sandbox: Sandbox,
    directory: PathBuf,
}

impl Files {
    fn new() -> Self {
        let sandbox = Sandbox::make(&sandbox::module());
        let output = sandbox.program("pwd").output().expect("pwd runs").stdout;
        let directory = String::from_utf8(output).expect("a path is text").trim_end().into();
        let files = Self { sandbox, directory };
        files.write("key", &[7; 32]);
        files
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let file = self.directory.join(name);
        fs::write(&file, bytes).expect("a file can be written");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("it is ours");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.join(name)).expect("it is there")
    }

    fn done(&self, command: &str) {
        assert_eq!(self.sandbox.run(command), [""; 0], "{command}");
    }

    /// The independent program: `seal` or `open`, the key's file or the passphrase, from, to.
    fn judge(&self, what: &str, secret: &str, from: &str, to: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = script.join("../../testdata/python/encrypted.py");
        let (script, python) = (script.display(), "/usr/bin/python3");
        self.done(&format!("{python} '{script}' {what} '{secret}' {from} {to}"));
    }

    /// Encrypts `length` bytes and gives the file.
    fn sealed(&self, length: usize) -> Vec<u8> {
        self.write("data", &data(length));
        self.done("metaslot encrypt -a aes -k key -i data -o it");
        self.read("it")
    }

    /// The files with a part of the output's name.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).expect("it is there");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name.contains("opened")).collect()
    }

    /// The first line of what is said to these bytes, of which nothing may be left.
    fn refusal(&self, command: &str, bytes: &[u8]) -> String {
        self.write("it", bytes);
        let said = self.sandbox.run(command);
        assert_eq!(said.last().map(String::as_str), Some("? 1"), "{said:?}");
        assert_eq!(self.left(), [""; 0], "{said:?}");
        said[0].clone()
    }
}

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at * at % 251).expect("it is small")).collect()
}

#[test]
fn another_program_reads_and_writes_the_same_format() {
    let files = Files::new();
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 200_000] {
        let data = data(length);
        assert_eq!(
            files.sealed(length).len(),
            HEADER + length + 16 * length.div_ceil(CHUNK).max(1)
        );
        files.judge("open", "key", "it", "judged");
        assert!(files.read("judged") == data, "{length}");
        files.judge("seal", "key", "data", "it");
        files.done(OPEN);
        assert!(files.read("opened") == data, "{length}");
    }
    for length in [16, 24] {
        files.write("key", &vec![9; length]);
        files.sealed(100);
        files.judge("open", "key", "it", "judged");
        assert_eq!(files.read("judged"), data(100));
    }
    files.write("phrase", b"open sesame\n");
    files.done("metaslot encrypt -a aes --pin-source phrase -i data -o it");
    files.judge("open", "passphrase:open sesame", "it", "judged");
    assert_eq!(files.read("judged"), data(100));
}

#[test]
fn no_changed_byte_is_accepted() {
    let files = Files::new();
    let sealed = files.sealed(20);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1 << (at % 8);
        let said = files.refusal(OPEN, &changed);
        let expected = match at {
            0..4 => ["it is not an encrypted file", "the file was cut"].as_slice(),
            4..8 => &["the file was encrypted with a passphrase"],
            8..HEADER => &["the key is not this file's, or its header was changed"],
            _ => &["chunk 0 was changed or cut, or is not in its place"],
        };
        assert!(expected.iter().any(|words| said.contains(words)), "byte {at}: {said}");
    }
    files.write("phrase", b"open sesame\n");
    files.judge("seal", "passphrase:open sesame", "data", "it");
    let sealed = files.read("it");
    let open = "metaslot decrypt -a aes --pin-source phrase -i it -o opened";
    for at in 4..36 {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        let said = files.refusal(open, &changed);
        let costly = said.contains("hashed 16778216 times, which is more than 10000000");
        let wrong = said.contains("the passphrase is not this file's, or its header was changed");
        assert!(if at == 4 { costly } else { wrong }, "byte {at}: {said}");
    }
}

#[test]
fn no_length_is_accepted_but_the_whole() {
    let files = Files::new();
    let sealed = files.sealed(20);
    for length in 0..sealed.len() {
        files.refusal(OPEN, &sealed[..length]);
    }
    files.refusal(OPEN, &[&sealed[..], b"x"].concat());
}

#[test]
fn chunks_are_taken_in_their_places_only() {
    let files = Files::new();
    let sealed = files.sealed(2 * CHUNK + 20);
    let (header, chunks) = sealed.split_at(HEADER);
    let [one, two, last] = [0, 1, 2].map(|at| {
        let start = at * SEALED;
        &chunks[start..chunks.len().min(start + SEALED)]
    });
    let cut = "the file was cut after chunk 1";
    let place = "is not in its place";
    let rows: &[(&[&[u8]], &str)] = &[
        (&[one, two], cut),
        (&[one], "the file was cut after chunk 0"),
        (&[], "the file was cut within chunk 0"),
        (&[two, one, last], "chunk 0 was changed"),
        (&[one, last], place),
        (&[last], place),
        (&[one, two, two, last], "chunk 2 was changed"),
        (&[one, one, two, last], "chunk 1 was changed"),
        (&[one, two, last, last], "chunk 2 was changed"),
        (&[one, two, last, one], "chunk 2 was changed"),
        (&[one, two, &last[..30]], "chunk 2 was changed or cut"),
        (&[one, two, &last[..16]], "the file was cut within chunk 2"),
        (&[one, two, last, &[0; 16]], "chunk 2 was changed"),
        (&[one, &two[..SEALED - 1]], "chunk 1 was changed or cut"),
    ];
    for (chunks, words) in rows {
        let said = files.refusal(OPEN, &[header, &chunks.concat()].concat());
        assert!(said.contains(words), "{words}: {said}");
    }
    // A last chunk that is full, and one more.
    let full = files.sealed(CHUNK);
    let said = files.refusal(OPEN, &[&full[..], last].concat());
    assert!(said.contains("there is more after the file's last chunk, 0"), "{said}");
    // A header and chunks of two files under one key.
    let other = files.sealed(CHUNK);
    let said = files.refusal(OPEN, &[&full[..HEADER], &other[HEADER..]].concat());
    assert!(said.contains("chunk 0 was changed"), "{said}");
    // What was right until then is on standard output; the exit code says that it was not all.
    files.write("it", &[header, one, two].concat());
    let said = files
        .sandbox
        .run("metaslot decrypt -a aes -k key < it > some; e=$?; wc -c < some; exit $e");
    assert!(said[0].contains(cut) && said[1] == CHUNK.to_string() && said[2] == "? 1", "{said:?}");
}

#[test]
fn nothing_is_left_of_a_command_that_is_killed() {
    let files = Files::new();
    let sealed = files.sealed(2 * CHUNK);
    let mut program = files.sandbox.program("metaslot");
    program.args(["decrypt", "-v", "-a", "aes", "-k", "key", "-o", "opened"]);
    let mut child = program.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&sealed).expect("it reads");
    // A dot says that the first chunk was written; the pipe stays open behind the last one.
    let mut said = [0];
    child.stderr.take().expect("a pipe").read_exact(&mut said).expect("it says something");
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    drop(input);
    assert_eq!((said, files.left()), (*b".", vec![]));
}

#[test]
fn data_is_in_no_core_dump() {
    let files = Files::new();
    let mark = b"what nobody else may read";
    let chunk: Vec<u8> = mark.iter().copied().cycle().take(CHUNK).collect();
    files.write("data", &chunk.repeat(3));
    files.done("metaslot encrypt -a aes -k key -i data -o it");
    for (command, from, to) in [("encrypt", "data", HEADER + SEALED), ("decrypt", "it", CHUNK)] {
        let mut program = files.sandbox.program("metaslot");
        program.args([command, "-a", "aes", "-k", "key"]);
        let mut child =
            program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(&files.read(from)[..HEADER + 2 * SEALED]).expect("it reads");
        let mut output = vec![0; to];
        let mut from = child.stdout.take().expect("it is piped");
        from.read_exact(&mut output).expect("the first chunk is there");
        let [dumped, protected] = copies(child.id(), &[mark])[0];
        drop((input, from));
        child.wait().expect("it ends");
        assert!(dumped == 0 && protected > 0, "{command}: {dumped} and {protected}");
    }
}
