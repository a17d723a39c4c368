package mail

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Why a charset was used.
const (
	ReasonDeclared = "declared" // the label, and the bytes did not contradict it
	ReasonASCII    = "ascii"    // no byte says anything
	ReasonUTF8     = "utf-8"    // valid UTF-8 wins over any label
	ReasonBOM      = "bom"      // a byte order mark
	ReasonEscape   = "escape"   // ISO-2022 escapes without or against a label
	ReasonDetected = "detected" // guessed from the bytes
	ReasonFallback = "fallback" // nothing else fitted: windows-1252
	ReasonUnknown  = "unknown"  // the label is not known; guessed
	ReasonPatched  = "mostly"   // UTF-8 but for a few bytes
	cp1252         = "windows-1252"
)

// Decoded is text in UTF-8 and how it came to be.
type Decoded struct {
	Text     []byte // may be the input itself
	Charset  string // used
	Reason   string
	Replaced int // U+FFFD made
}

// charsetAlias maps labels that mail uses to names that the tables of x/text know.
var charsetAlias = map[string]string{
	"unicode-1-1-utf-7": "utf-7", "utf7": "utf-7", "x-unicode-2-0-utf-7": "utf-7",
	"utf8": "utf-8", "utf-8mb4": "utf-8", "utf8mb4": "utf-8", "utf8mb3": "utf-8", "unicode-1-1-utf-8": "utf-8", "utf-8-sig": "utf-8", "cp65001": "utf-8",
	"us-ascii": cp1252, "ascii": cp1252, "iso-8859-1": cp1252, "latin1": cp1252, "ansi_x3.4-1968": cp1252, "iso8859-1": cp1252, "ansi": cp1252, "8859-1": cp1252, "iso-8859-1-windows-3.1-latin-1": cp1252,
	"cp932": "shift_jis", "ms932": "shift_jis", "windows-31j": "shift_jis", "x-ms-cp932": "shift_jis", "shift-jis": "shift_jis", "sjis": "shift_jis", "x-sjis": "shift_jis", "mskanji": "shift_jis",
	"iso-2022-jp-ms": "iso-2022-jp", "iso-2022-jp-1": "iso-2022-jp", "iso-2022-jp-2": "iso-2022-jp", "iso-2022-jp-3": "iso-2022-jp", "cp50220": "iso-2022-jp", "cp50221": "iso-2022-jp", "csiso2022jp": "iso-2022-jp",
	"cp51932": "euc-jp", "eucjp": "euc-jp", "eucjp-ms": "euc-jp", "ujis": "euc-jp",
	"cp949": "euc-kr", "ms949": "euc-kr", "uhc": "euc-kr", "ks_c_5601-1987": "euc-kr", "ks_c_5601-1989": "euc-kr", "ks_c_5601": "euc-kr", "ksc5601": "euc-kr", "ks-c-5601-1987": "euc-kr", "euckr": "euc-kr", "5601": "euc-kr", "korean": "euc-kr",
	"csiso2022kr": "iso-2022-kr",
	"x-gbk":       "gbk", "cp936": "gbk", "ms936": "gbk", "gb2312": "gb18030", "gb_2312-80": "gb18030", "euc-cn": "gb18030", "x-euc-cn": "gb18030", "chinese": "gb18030", "gb-2312": "gb18030", "cn-gb": "gb18030",
	"hz": "hz-gb-2312", "x-hz": "hz-gb-2312",
	"big5-hkscs": "big5", "big5hkscs": "big5", "cp950": "big5", "x-x-big5": "big5", "big-5": "big5", "cn-big5": "big5",
	"koi8-ru": "koi8-u", "koi": "koi8-r", "koi8": "koi8-r", "koi8r": "koi8-r",
	"unicode": "utf-16", "ucs-2": "utf-16", "utf16": "utf-16", "iso-10646-ucs-2": "utf-16", "csunicode": "utf-16",
	"utf32": "utf-32", "ucs-4": "utf-32", "iso-10646-ucs-4": "utf-32",
	"tis-620": "windows-874", "tis620": "windows-874", "iso-8859-11": "windows-874", "cp874": "windows-874",
	"mac": "macintosh", "x-mac-roman": "macintosh", "mac-roman": "macintosh", "x-mac-ce": "macintosh",
	"iso-8859-8-e": "iso-8859-8", "iso-8859-8-i": "iso-8859-8", "visual": "iso-8859-8", "logical": "iso-8859-8",
	"iso-8859-9": "windows-1254",
}

// noCharset are labels that say nothing.
var noCharset = map[string]bool{
	"": true, "default": true, "unknown": true, "unknown-8bit": true, "x-unknown": true, "x-user-defined": true,
	"binary": true, "8bit": true, "7bit": true, "none": true, "charset": true, "_charset_": true, "_iso-2022-jp$esc": true, "iso-8859": true,
}

// charmaps are single-byte tables that the web's index leaves out.
var charmaps = map[string]encoding.Encoding{
	"ibm437": charmap.CodePage437, "ibm850": charmap.CodePage850, "ibm852": charmap.CodePage852, "ibm855": charmap.CodePage855,
	"ibm858": charmap.CodePage858, "ibm860": charmap.CodePage860, "ibm862": charmap.CodePage862, "ibm863": charmap.CodePage863,
	"ibm865": charmap.CodePage865, "ibm866": charmap.CodePage866, "ibm037": charmap.CodePage037, "ibm1047": charmap.CodePage1047,
}

// normalLabel is the label as tables know it: lower case, without quotes, brackets and aliases.
func normalLabel(label string) string {
	label = strings.ToLower(strings.Trim(label, " \t\r\n\"'`<>[](){};,="))
	label = strings.TrimPrefix(label, "charset=")
	label, _, _ = strings.Cut(label, "*") // RFC 2231 language
	if noCharset[label] {
		return ""
	}
	if a, ok := charsetAlias[label]; ok {
		return a
	}
	// "cp-1251", "windows1251", "cp1251", "x-cp1251", "win-1251", "microsoft-cp1251"
	digits := strings.TrimLeft(label, "abcdefghijklmnopqrstuvwxyz-_")
	stem := strings.TrimRight(strings.TrimSuffix(label, digits), "-_")
	if parseInt([]byte(digits)) >= 0 {
		switch strings.TrimPrefix(stem, "x-") {
		case "cp", "windows", "win", "windows-cp", "microsoft-cp", "ms", "ansi", "windows-codepage", "codepage", "dos", "ibm", "oem":
			if strings.HasPrefix(digits, "125") || digits == "874" {
				return "windows-" + digits
			}
			if _, ok := charmaps["ibm"+digits]; ok {
				return "ibm" + digits
			}
			if a, ok := charsetAlias["cp"+digits]; ok {
				return a
			}
		}
	}
	if rest, ok := strings.CutPrefix(label, "iso8859"); ok {
		return normalLabel("iso-8859" + "-" + strings.TrimLeft(rest, "-_"))
	}
	if rest, ok := strings.CutPrefix(label, "iso_8859"); ok {
		rest, _, _ = strings.Cut(rest, ":")
		return normalLabel("iso-8859" + "-" + strings.TrimLeft(rest, "-_"))
	}
	return label
}

// lookup finds the decoder of a normalised label; nil when there is none.
func lookup(label string) encoding.Encoding {
	if e := charmaps[label]; e != nil {
		return e
	}
	switch label {
	case "gb18030", "gbk":
		return simplifiedchinese.GB18030
	case "utf-16", "utf-16be":
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case "utf-16le":
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case "utf-32", "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	case "iso-2022-jp":
		return japanese.ISO2022JP
	case "hz-gb-2312":
		return simplifiedchinese.HZGB2312
	}
	if e, err := htmlindex.Get(label); err == nil {
		if name, _ := htmlindex.Name(e); name != "replacement" && name != "x-user-defined" {
			return e
		}
	}
	if e, err := ianaindex.MIME.Encoding(label); err == nil && e != nil {
		return e
	}
	return nil
}

// DecodeCharset turns bytes into UTF-8. The order: a byte order mark; stateful seven-bit charsets
// by their label, unless the bytes are multi-byte UTF-8; valid UTF-8, whatever the label; UTF-8
// with a few broken bytes; the label; ISO-2022 escapes; detection; windows-1252.
func DecodeCharset(b []byte, declared string) Decoded {
	label := normalLabel(declared)
	wide := strings.HasPrefix(label, "utf-16") || strings.HasPrefix(label, "utf-32")
	stateful := strings.HasPrefix(label, "iso-2022") || label == "hz-gb-2312" || label == "utf-7"
	if (wide || stateful) && !ownDecoder(label) && lookup(label) == nil {
		wide, stateful = false, false // a name like theirs, and none of them
	}
	if d, ok := decodeBOM(b); ok && (!wide || d.Charset != "utf-8") {
		return d
	}
	escape := bytes.IndexByte(b, 0x1b) >= 0
	ascii := isASCII(b)
	if ascii && !stateful && !escape && !wide {
		return Decoded{Text: b, Charset: "us-ascii", Reason: ReasonASCII}
	}
	if !ascii && !wide && utf8.Valid(b) {
		return Decoded{Text: b, Charset: "utf-8", Reason: ReasonUTF8}
	}
	switch {
	case label == "utf-7" && ascii:
		return replaced(decodeUTF7(b), label, ReasonDeclared)
	case ownDecoder(label) && label != "utf-7":
		return replaced(decodeISO2022(b), label, ReasonDeclared)
	case stateful && ascii:
		return decodeWith(lookup(label), b, label, ReasonDeclared)
	case escape && ascii && hasISO2022(b):
		if bytes.Contains(b, []byte("\x1b$)")) {
			return replaced(decodeISO2022(b), "iso-2022-kr", ReasonEscape)
		}
		return decodeWith(japanese.ISO2022JP, b, "iso-2022-jp", ReasonEscape)
	case ascii && !wide:
		return Decoded{Text: b, Charset: "us-ascii", Reason: ReasonASCII}
	case wide:
		return decodeWide(b, label)
	}
	if mostlyUTF8(b, label == "utf-8") {
		return replaced(bytes.ToValidUTF8(b, []byte("\uFFFD")), "utf-8", ReasonPatched)
	}
	return decodeLabelled(b, label)
}

// ownDecoder says whether the label is one of those that x/text has no decoder for and this package
// has.
func ownDecoder(label string) bool {
	switch label {
	case "utf-7", "iso-2022-kr", "iso-2022-cn", "iso-2022-cn-ext":
		return true
	}
	return false
}

// decodeLabelled handles bytes above 0x7f that are not UTF-8.
func decodeLabelled(b []byte, label string) Decoded {
	reason := ReasonDetected
	if label != "" && label != "utf-8" && label != "utf-7" {
		if e := lookup(label); e != nil {
			d := decodeWith(e, b, label, ReasonDeclared)
			// A Latin label is what software writes when it knows nothing: it does not stand
			// against bytes that are plainly another script.
			if label == cp1252 || d.Replaced*20 > len(b) {
				if name := detect(b); name != "" && name != label {
					if g := decodeWith(lookup(name), b, name, ReasonDetected); g.Replaced <= d.Replaced {
						return g
					}
				}
			}
			return d
		}
		reason = ReasonUnknown
	}
	name := detect(b)
	if name == "" {
		name = cp1252
		if reason == ReasonDetected {
			reason = ReasonFallback
		}
	}
	return decodeWith(lookup(name), b, name, reason)
}

func decodeBOM(b []byte) (Decoded, bool) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		if rest := b[3:]; utf8.Valid(rest) {
			return Decoded{Text: rest, Charset: "utf-8", Reason: ReasonBOM}, true
		}
		return replaced(bytes.ToValidUTF8(b[3:], []byte("\uFFFD")), "utf-8", ReasonBOM), true
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")):
		return decodeWith(lookup("utf-32le"), b, "utf-32le", ReasonBOM), true
	case bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return decodeWith(lookup("utf-32be"), b, "utf-32be", ReasonBOM), true
	case bytes.HasPrefix(b, []byte("\xff\xfe")) && len(b)%2 == 0:
		return decodeWith(lookup("utf-16le"), b, "utf-16le", ReasonBOM), true
	case bytes.HasPrefix(b, []byte("\xfe\xff")) && len(b)%2 == 0:
		return decodeWith(lookup("utf-16be"), b, "utf-16be", ReasonBOM), true
	}
	return Decoded{}, false
}

// decodeWide decodes UTF-16 and UTF-32 labels without a mark. Bytes without any zero are not UTF-16
// of a Latin text; when they are valid UTF-8 too, the label is wrong.
func decodeWide(b []byte, label string) Decoded {
	zeros := bytes.Count(b, []byte{0})
	if zeros == 0 && utf8.Valid(b) {
		return Decoded{Text: b, Charset: "utf-8", Reason: ReasonUTF8}
	}
	if label == "utf-16" || label == "utf-32" {
		// RFC 2781 says big-endian; Windows writes little. Latin letters and spaces tell.
		little, big := 0, 0
		for i, c := range b {
			if c != 0 {
				continue
			}
			if i%2 == 1 {
				little++
			} else {
				big++
			}
		}
		if label == "utf-16" && little > big || label == "utf-32" && len(b) >= 4 && b[3] == 0 && b[0] != 0 {
			label += "le"
		}
	}
	return decodeWith(lookup(label), b, label, ReasonDeclared)
}

func decodeWith(e encoding.Encoding, b []byte, name, reason string) Decoded {
	out, err := e.NewDecoder().Bytes(b)
	if err != nil { // a decoder replaces what it cannot read; this is a truncated sequence at most
		out = bytes.ToValidUTF8(out, []byte("\uFFFD"))
	}
	return replaced(out, name, reason)
}

func replaced(text []byte, name, reason string) Decoded {
	return Decoded{Text: text, Charset: name, Reason: reason, Replaced: bytes.Count(text, []byte("\uFFFD"))}
}

func isASCII(b []byte) bool {
	for len(b) >= 8 {
		if (uint64(b[0])|uint64(b[1])|uint64(b[2])|uint64(b[3])|uint64(b[4])|uint64(b[5])|uint64(b[6])|uint64(b[7]))&0x80 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// mostlyUTF8 says whether b is UTF-8 but for a few bytes: a Latin-1 footer under a UTF-8 mail.
// declared says that the label is UTF-8, which makes up for more of them.
func mostlyUTF8(b []byte, declared bool) bool {
	good, bad := 0, 0
	for i := 0; i < len(b); {
		if b[i] < 0x80 {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
		i += n
	}
	if declared {
		return bad <= 2*good
	}
	return good > 0 && bad*4 <= good
}

// hasISO2022 looks for a designation escape: ESC $ or ESC ( with its final byte.
func hasISO2022(b []byte) bool {
	for i := 0; i+2 < len(b); i++ {
		if b[i] == 0x1b && (b[i+1] == '$' && (b[i+2] == 'B' || b[i+2] == '@' || b[i+2] == ')' || b[i+2] == '(') || b[i+1] == '(' && (b[i+2] == 'I' || b[i+2] == 'J')) {
			return true
		}
	}
	return false
}

// decodeISO2022 decodes ISO-2022-KR and the GB 2312 part of ISO-2022-CN: a designation
// (ESC $ ) C or ESC $ ) A), then pairs between shift-out and shift-in. With the high bits set the
// pairs are EUC-KR and GB 2312.
func decodeISO2022(b []byte) []byte {
	var enc encoding.Encoding = korean.EUCKR
	out := make([]byte, 0, len(b)*3/2)
	var pairs []byte
	flush := func() {
		if len(pairs) > 0 {
			t, _ := enc.NewDecoder().Bytes(pairs)
			out = append(out, t...)
			pairs = pairs[:0]
		}
	}
	shifted := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == 0x1b && i+3 < len(b) && b[i+1] == '$' && b[i+2] == ')':
			flush()
			if enc = korean.EUCKR; b[i+3] != 'C' {
				enc = simplifiedchinese.GB18030
			}
			i += 3
		case c == 0x0e:
			shifted = true
		case c == 0x0f:
			flush()
			shifted = false
		case c == '\n': // shifts end with the line
			flush()
			shifted = false
			out = append(out, c)
		case shifted && c > 0x20 && c < 0x7f && i+1 < len(b):
			pairs = append(pairs, c|0x80, b[i+1]|0x80)
			i++
		case c >= 0x80:
			pairs = append(pairs, c)
		default:
			flush()
			out = append(out, c)
		}
	}
	flush()
	return bytes.ToValidUTF8(out, []byte("\uFFFD"))
}

// decodeUTF7 decodes UTF-7 (RFC 2152): base64 of UTF-16BE between "+" and anything else.
func decodeUTF7(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '+' {
			out = append(out, b[i])
			i++
			continue
		}
		j := i + 1
		for j < len(b) && base64Value[b[j]] != 0xff && b[j] != '-' && b[j] != '_' {
			j++
		}
		switch {
		case j == i+1 && j < len(b) && b[j] == '-':
			out = append(out, '+')
		case j == i+1:
			out = append(out, '+')
		default:
			units, _ := DecodeBase64(nil, b[i+1:j])
			t, _ := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder().Bytes(units[:len(units)&^1])
			out = append(out, t...)
		}
		if i = j; i < len(b) && b[i] == '-' {
			i++
		}
	}
	return bytes.ToValidUTF8(out, []byte("\uFFFD"))
}
