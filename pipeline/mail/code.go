package mail

// Code names why a record was rejected or filtered, or what was odd about one that was used. The
// list is fixed: reports count by it and people search for it. README.md has the table.
type Code string

// Kinds of code.
const (
	KindReject  = "reject"  // the record is not evaluated
	KindFilter  = "filter"  // the record is no customer message; counted, not evaluated
	KindWarning = "warning" // the record is evaluated; something about it was odd
)

// CodeInfo documents one code.
type CodeInfo struct {
	Code    Code
	Kind    string // KindReject, KindFilter or KindWarning
	Stage   string // read, mime or text
	Meaning string
}

// Codes of rejects.
const (
	CodeTruncated      Code = "read.truncated"
	CodeUnknownFormat  Code = "read.unknown_format"
	CodeEmptyRecord    Code = "read.empty"
	CodeUnreadable     Code = "read.unreadable"
	CodeSymlink        Code = "read.symlink"
	CodeMessageBytes   Code = "read.message_too_large"
	CodeBeforeFirst    Code = "mbox.before_first_separator"
	CodeCSVQuote       Code = "csv.unclosed_quote"
	CodeCSVFields      Code = "csv.field_count"
	CodeCSVRecordBytes Code = "csv.record_too_large"
	CodeJSONSyntax     Code = "json.syntax"
	CodeJSONShape      Code = "json.not_an_object"
	CodeJSONBytes      Code = "json.record_too_large"
	CodeEncrypted      Code = "archive.encrypted"
	CodeDamaged        Code = "archive.damaged"
	CodeArchiveDepth   Code = "archive.too_deep"
	CodeArchiveEntries Code = "archive.too_many_entries"
	CodeExpansion      Code = "archive.expansion"
	CodeHeaderBytes    Code = "mime.header_too_large"
	CodeHeaderLine     Code = "mime.header_field_too_large"
	CodeParams         Code = "mime.too_many_parameters"
	CodeParts          Code = "mime.too_many_parts"
	CodeDepth          Code = "mime.too_deep"
	CodeNoText         Code = "text.none"
	CodeNoBody         Code = "text.no_body_field"
)

// Codes of filters.
const (
	CodeDeleted    Code = "filter.deleted"
	CodeDraft      Code = "filter.draft"
	CodeFolderData Code = "filter.folder_data"
	CodeSystem     Code = "filter.system"
)

// Codes of warnings.
const (
	CodeSuspectSplit    Code = "suspect_split"
	CodeArchivePath     Code = "archive_path"
	CodeCSVBareQuote    Code = "csv_bare_quote"
	CodeCSVExtraFields  Code = "csv_extra_fields"
	CodeJSONSurrogate   Code = "json_lone_surrogate"
	CodeSystemComment   Code = "system_comment"
	CodeHeaderNoColon   Code = "header_line_skipped"
	CodeHeaderNoBlank   Code = "header_no_blank_line"
	CodeHeaderMissing   Code = "header_missing"
	CodeNoMessageID     Code = "no_message_id"
	CodeNoDate          Code = "no_date"
	CodeDateNoZone      Code = "date_without_zone"
	CodeDateGuessed     Code = "date_from_transport"
	CodeSeveralLabels   Code = "several_labels"
	CodeBadBase64       Code = "bad_base64"
	CodeBadQP           Code = "bad_quoted_printable"
	CodeUnknownCTE      Code = "unknown_transfer_encoding"
	CodeUUStripped      Code = "uuencode_removed"
	CodeCharsetGuessed  Code = "charset_guessed"
	CodeCharsetWrong    Code = "charset_label_wrong"
	CodeCharsetUnknown  Code = "charset_unknown"
	CodeReplaced        Code = "replacement_characters"
	CodeNulRemoved      Code = "nul_removed"
	CodeNoBoundary      Code = "boundary_missing"
	CodeNoFinalBoundary Code = "final_boundary_missing"
	CodeBadContentType  Code = "bad_content_type"
	CodeNesting         Code = "nested_messages_skipped"
	CodeHTMLCut         Code = "html_cut"
	CodeTextCut         Code = "text_cut"
	CodeSalvaged        Code = "salvaged"
	CodeQuoteReverted   Code = "quote_strip_reverted"
	CodeNoTextFound     Code = "no_text"
)

var codes = []CodeInfo{
	{CodeTruncated, KindReject, "read", "the source ends, or breaks off, inside this record (a cut-off or damaged .gz or .zst)"},
	{CodeUnknownFormat, KindReject, "read", "a file in a folder or archive is in no format this program reads"},
	{CodeEmptyRecord, KindReject, "read", "the record holds no bytes but white space"},
	{CodeUnreadable, KindReject, "read", "a file of a folder cannot be opened or read"},
	{CodeSymlink, KindReject, "read", "a symbolic or hard link in a folder or archive; links are never followed"},
	{CodeMessageBytes, KindReject, "read", "larger than the message limit"},
	{CodeBeforeFirst, KindReject, "read", "bytes of an mbox that stand before its first \"From \" line"},
	{CodeCSVQuote, KindReject, "read", "a quoted field that is never closed; reading goes on at the next line"},
	{CodeCSVFields, KindReject, "read", "the record has another number of fields than the header"},
	{CodeCSVRecordBytes, KindReject, "read", "the record is larger than the CSV limit"},
	{CodeJSONSyntax, KindReject, "read", "the record is not valid JSON; reading goes on at the next one"},
	{CodeJSONShape, KindReject, "read", "the record is valid JSON but no object"},
	{CodeJSONBytes, KindReject, "read", "the line or record is larger than the JSON limit"},
	{CodeEncrypted, KindReject, "read", "an encrypted archive entry"},
	{CodeDamaged, KindReject, "read", "an archive entry that does not decompress or fails its checksum"},
	{CodeArchiveDepth, KindReject, "read", "an archive inside more archives than allowed"},
	{CodeArchiveEntries, KindReject, "read", "the archive has more entries than allowed; the rest is not read"},
	{CodeExpansion, KindReject, "read", "decompressed bytes exceed the allowed multiple of the compressed ones; the rest is not read"},
	{CodeHeaderBytes, KindReject, "mime", "a header larger than the limit"},
	{CodeHeaderLine, KindReject, "mime", "one header field larger than the limit"},
	{CodeParams, KindReject, "mime", "more Content-Type parameters than the limit"},
	{CodeParts, KindReject, "mime", "more MIME parts than the limit"},
	{CodeDepth, KindReject, "mime", "multiparts nested deeper than the limit"},
	{CodeNoText, KindReject, "text", "neither subject nor body holds any text"},
	{CodeNoBody, KindReject, "text", "the record has none of the fields that could hold the text"},

	{CodeDeleted, KindFilter, "read", "deleted in the mail program (X-Mozilla-Status, X-Status, Maildir flag T) or in the help desk"},
	{CodeDraft, KindFilter, "read", "a draft (Maildir flag D)"},
	{CodeFolderData, KindFilter, "read", "the mail server's own bookkeeping message in an mbox"},
	{CodeSystem, KindFilter, "read", "written by the help desk itself, not by a customer"},

	{CodeSuspectSplit, KindWarning, "read", "a \"From \" line that was seen but not taken as a separator, or taken without a date"},
	{CodeArchivePath, KindWarning, "read", "the archive names a path outside itself; nothing is written, the name is shown cleaned"},
	{CodeCSVBareQuote, KindWarning, "read", "a quote character inside a field that is not doubled"},
	{CodeCSVExtraFields, KindWarning, "read", "empty fields beyond the header's, ignored"},
	{CodeJSONSurrogate, KindWarning, "read", "half a surrogate pair in a JSON string became U+FFFD"},
	{CodeSystemComment, KindWarning, "read", "comments by the help desk itself or internal notes were passed over"},
	{CodeHeaderNoColon, KindWarning, "mime", "a header line without a colon was skipped"},
	{CodeHeaderNoBlank, KindWarning, "mime", "no blank line between header and body"},
	{CodeHeaderMissing, KindWarning, "mime", "the record has no header at all; everything is body"},
	{CodeNoMessageID, KindWarning, "mime", "no Message-ID"},
	{CodeNoDate, KindWarning, "mime", "no usable date; the message belongs to no week"},
	{CodeDateNoZone, KindWarning, "mime", "the date names no zone; taken as UTC or as --tz says"},
	{CodeDateGuessed, KindWarning, "mime", "no usable Date field; taken from the mbox line or the first Received field"},
	{CodeSeveralLabels, KindWarning, "mime", "several Gmail labels could be the queue; the first was taken"},
	{CodeBadBase64, KindWarning, "mime", "base64 with foreign bytes, or text that is not base64 and was read as it stands"},
	{CodeBadQP, KindWarning, "mime", "quoted-printable with illegal escapes, kept as they stand"},
	{CodeUnknownCTE, KindWarning, "mime", "an unknown transfer encoding; the bytes were read as they stand"},
	{CodeUUStripped, KindWarning, "text", "uuencoded files in the text were removed"},
	{CodeCharsetGuessed, KindWarning, "text", "no charset was declared and the bytes are not ASCII or UTF-8"},
	{CodeCharsetWrong, KindWarning, "text", "the bytes contradict the declared charset; the bytes won"},
	{CodeCharsetUnknown, KindWarning, "text", "the declared charset is not known"},
	{CodeReplaced, KindWarning, "text", "bytes that mean nothing in the charset became U+FFFD"},
	{CodeNulRemoved, KindWarning, "text", "NUL characters were removed"},
	{CodeNoBoundary, KindWarning, "mime", "a multipart without boundary, or whose boundary never comes; read as one part"},
	{CodeNoFinalBoundary, KindWarning, "mime", "a multipart without its final boundary"},
	{CodeBadContentType, KindWarning, "mime", "a Content-Type that cannot be read; taken as text"},
	{CodeNesting, KindWarning, "mime", "attached messages nested deeper than the limit were passed over"},
	{CodeHTMLCut, KindWarning, "text", "an HTML part longer than the limit was cut"},
	{CodeTextCut, KindWarning, "text", "text longer than the limit was cut; the full length is recorded"},
	{CodeSalvaged, KindWarning, "text", "no MIME part gave text; the raw body was used"},
	{CodeQuoteReverted, KindWarning, "text", "removing quotes would have left nothing; the whole text was kept"},
	{CodeNoTextFound, KindWarning, "text", "the body holds no text; only the subject is read"},
}

// Codes returns the fixed list of codes in the order of the table in README.md.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes...) }

// A Reject says why a record is not evaluated. Detail names what was wrong without the customer's
// text; the Limit fields are set when a limit was exceeded.
type Reject struct {
	Stage          string
	Code           Code
	Detail         string
	LimitName      string
	LimitValue     int64
	LimitActual    int64 // what was found; a lower bound when counting stopped at the limit
	RecoveredChars int64 // characters of text that could have been read all the same
}

// NewReject fills the stage from the table of codes.
func NewReject(code Code, detail string) *Reject {
	return &Reject{Stage: code.Stage(), Code: code, Detail: detail}
}

// NewLimit is a Reject for an exceeded limit.
func NewLimit(code Code, what, name string, value, actual int64) *Reject {
	return &Reject{Stage: code.Stage(), Code: code, Detail: what, LimitName: name, LimitValue: value, LimitActual: actual}
}

// Stage is where the code arises: read, mime or text.
func (c Code) Stage() string {
	for i := range codes {
		if codes[i].Code == c {
			return codes[i].Stage
		}
	}
	return ""
}
