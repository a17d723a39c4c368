package mail

import "time"

// Format of a source or record.
type Format string

// The formats. FormatAuto detects from content.
const (
	FormatAuto    Format = ""
	FormatMbox    Format = "mbox"   // ">From " loses one ">", as mboxrd writes it
	FormatMboxo   Format = "mboxo"  // ">From " stays as it is
	FormatMboxrd  Format = "mboxrd" // the same as FormatMbox, named
	FormatMboxcl  Format = "mboxcl" // the same; Content-Length is honoured wherever it fits
	FormatMaildir Format = "maildir"
	FormatFolder  Format = "folder"
	FormatEML     Format = "eml"
	FormatCSV     Format = "csv"
	FormatJSONL   Format = "jsonl"
	FormatJSON    Format = "json"
	FormatZip     Format = "zip"
	FormatTar     Format = "tar"
)

// A Message is one record of an export.
type Message struct {
	Source   string // base name of the export
	Member   string // path inside a folder or archive; empty for a plain file
	RecordNo int64  // from 1, within the source
	// Offset and Length are the record's bytes in the uncompressed source, or in the member; the
	// Separator bytes before it (the mbox "From " line, commas and brackets of JSON) belong to no record.
	Offset, Length int64
	Separator      int64
	Line           int64 // first line of a CSV or JSON record, from 1; 0 otherwise
	Format         Format

	Raw      []byte   // RFC 5322 bytes, owned by the message; nil for records of columns
	Columns  *Columns // a CSV or JSON record
	FromLine string   // the mbox separator, without its line end
	Folder   string   // folder name usable as a label; empty when there is none

	Warnings []Code
	Reject   *Reject // set: the record cannot be used; Raw may be nil
	Filtered Code    // set: the record is no customer message
}

// Columns is a record that came as fields instead of as mail.
type Columns struct {
	ID, Subject, Text, HTML, Date, Label, Routed, Thread string
	// HasText says that one of the fields that can hold the text was there, even if empty.
	HasText bool
}

// Identity is what a message says about itself.
type Identity struct {
	MessageID   string // as written, with angle brackets; of columns the id field
	ThreadKey   string // thread root by References or In-Reply-To, else the own id; empty without any
	Date        time.Time
	HasDate     bool
	Label       string
	LabelSource string // file, header, gmail, column, folder
	Routed      string
	Subject     string // decoded
	Warnings    []Code
}

// Source is what is known about one export after reading it.
type Source struct {
	Name         string
	Format       Format
	Compression  string // gz, zst, bz2 or empty
	Bytes        int64  // of the file as stored
	SHA256       string // hex, of the bytes as stored; of a folder, over its names and contents
	Seen         int64  // records, rejected ones included
	Incomplete   bool   // cut off or damaged, at uncompressed byte IncompleteAt
	IncompleteAt int64
	Fault        string // what broke, for a person
	Changed      string // how the file changed while it was read, for a person; empty: it did not
}
