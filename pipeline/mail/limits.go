package mail

// Limits bound what one record may cost, in bytes unless a comment says otherwise. Mail is written
// by strangers: every loop over it has a bound, and going over one is a named reject or warning.
type Limits struct {
	MessageBytes   int64
	HeaderBytes    int64 // all header fields of one part
	HeaderField    int64 // one field with its continuation lines
	Parameters     int   // of one Content-Type
	Parts          int   // of one message
	Depth          int   // multiparts inside multiparts
	Nesting        int   // messages attached to messages
	HTMLBytes      int64 // of one part; the rest is cut
	TextBytes      int64 // decoded text kept of one message; the rest is cut, its length recorded
	JSONBytes      int64 // one line or object
	CSVBytes       int64 // one record
	ArchiveEntries int64
	ArchiveDepth   int   // archives inside archives
	Expansion      int64 // decompressed bytes per compressed byte
	ExpansionFloor int64 // decompressed bytes that are always allowed
}

// OrDefault fills zero fields with the defaults.
func (l Limits) OrDefault() Limits {
	set := func(p *int64, v int64) {
		if *p == 0 {
			*p = v
		}
	}
	setInt := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&l.MessageBytes, 64<<20) // twice what large providers accept
	set(&l.HeaderBytes, 1<<20)
	set(&l.HeaderField, 64<<10) // a mailing list's To field with a thousand names
	setInt(&l.Parameters, 100)
	setInt(&l.Parts, 1000)
	setInt(&l.Depth, 20)
	setInt(&l.Nesting, 3)
	set(&l.HTMLBytes, 8<<20)
	set(&l.TextBytes, 1<<20) // a quarter of a million tokens, far past any cap
	set(&l.JSONBytes, 64<<20)
	set(&l.CSVBytes, 16<<20)
	set(&l.ArchiveEntries, 1_000_000)
	setInt(&l.ArchiveDepth, 3)
	set(&l.Expansion, 200) // text compresses 3 to 20 times; deflate cannot pass 1032
	set(&l.ExpansionFloor, 10<<20)
	return l
}

// DefaultLimits returns the limits that zero options mean.
func DefaultLimits() Limits { return Limits{}.OrDefault() }
