"""Bytes to text with Python's mailbox and email, for comparison with BenchmarkBytesToText.

    python3 pipeline/mail/peers/python_mail.py FILE.mbox[.gz]...

Prints MB of uncompressed mbox per second of processor time, best of five: split, parse with the
library's own (fast) defaults, take the first plain part, else the first HTML one, decoded. No HTML
to text, no quotes, no signatures, no digests: less work than misroute does on the same bytes.
"""

import gzip
import mailbox
import os
import sys
import tempfile
import time


def text_of(message):
    for wanted in ("text/plain", "text/html"):
        for part in message.walk():
            if part.get_content_type() == wanted:
                payload = part.get_payload(decode=True) or b""
                try:
                    return payload.decode(part.get_content_charset() or "latin-1", "replace")
                except LookupError:
                    return payload.decode("latin-1")
    return ""


def run(path):
    start = time.process_time()
    characters = messages = 0
    for message in mailbox.mbox(path, create=False):
        try:
            characters += len(str(message["subject"] or "")) + len(text_of(message))
        except Exception:  # a message that the library cannot read
            pass
        messages += 1
    return messages, characters, time.process_time() - start


def main():
    for name in sys.argv[1:]:
        data = gzip.open(name).read() if name.endswith(".gz") else open(name, "rb").read()
        with tempfile.NamedTemporaryFile(suffix=".mbox", delete=False) as f:
            f.write(data)
        try:
            best = None
            for _ in range(5):
                result = run(f.name)
                if best is None or result[2] < best[2]:
                    best = result
        finally:
            os.unlink(f.name)
        messages, characters, seconds = best
        print(f"{os.path.basename(name)}: {messages} messages, {characters} characters, {len(data) / seconds / 1e6:.1f} MB/s")


if __name__ == "__main__":
    main()
