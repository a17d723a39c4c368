package tokenize

import "unicode/utf8"

// clusterLength returns the length in bytes of the extended grapheme cluster at the start of b (UAX 29,
// as the crate unicode-segmentation 1.12 has it).
func clusterLength(b []byte) int {
	r, n := utf8.DecodeRune(b)
	prev := clusterClass(r)
	if prev == clCR && n < len(b) && b[n] == '\n' {
		return n + 1
	}
	if prev == clControl || prev == clCR {
		return n
	}
	flags := 1                         // regional indicators so far
	pictograph := prev == clPictograph // a pictograph and extenders so far (GB11)
	linked := prev == clConsonant      // a consonant, extenders and linkers so far (GB9c)
	linker := false
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		class := clusterClass(r)
		if !joins(prev, class, flags, pictograph, linked && linker) {
			return n
		}
		if prev == clRegional && class == clRegional {
			flags++
		}
		switch class {
		case clPictograph:
			pictograph, linked, linker = true, false, false
		case clConsonant:
			pictograph, linked, linker = false, true, false
		case clExtend, clZWJ:
			linker = linker || linked && uni.word(r)&clusterLinker != 0
		default:
			pictograph, linked, linker = false, false, false
		}
		prev = class
		n += size
	}
	return n
}

const (
	clOther = iota
	clControl
	clCR
	clExtend
	clZWJ
	clSpacing
	clPrepend
	clRegional
	clL
	clV
	clT
	clLV
	clLVT
	clPictograph
	clConsonant
)

// joins says whether no boundary lies between neighbours of the two classes.
func joins(prev, class, flags int, pictograph, conjunct bool) bool {
	switch class {
	case clControl, clCR:
		return false
	case clExtend, clZWJ, clSpacing:
		return true
	}
	switch prev {
	case clPrepend:
		return true
	case clL:
		return class == clL || class == clV || class == clLV || class == clLVT
	case clLV, clV:
		return class == clV || class == clT
	case clLVT, clT:
		return class == clT
	case clZWJ:
		if pictograph && class == clPictograph {
			return true
		}
	case clRegional:
		return class == clRegional && flags%2 == 1
	}
	return conjunct && class == clConsonant
}

func clusterClass(r rune) int {
	if r < utf8.RuneSelf {
		switch {
		case r == '\r':
			return clCR
		case r < ' ' || r == 0x7F:
			return clControl
		}
		return clOther
	}
	switch {
	case r == 0x200D:
		return clZWJ
	case r >= 0x1F1E6 && r <= 0x1F1FF:
		return clRegional
	case isHangul(r):
		if (r-hangulBase)%hangulT == 0 {
			return clLV
		}
		return clLVT
	case r >= 0x1100 && r <= 0x115F || r >= 0xA960 && r <= 0xA97C:
		return clL
	case r >= 0x1160 && r <= 0x11A7 || r >= 0xD7B0 && r <= 0xD7C6:
		return clV
	case r >= 0x11A8 && r <= 0x11FF || r >= 0xD7CB && r <= 0xD7FB:
		return clT
	}
	word := uni.word(r)
	switch {
	case word&clusterExtends != 0:
		if c := word & categoryMask; c == catMc && !extendsSpacing(r) {
			return clSpacing
		}
		return clExtend
	case word&clusterPrepends != 0:
		return clPrepend
	case word&clusterPictograph != 0:
		return clPictograph
	case word&clusterConsonant != 0:
		return clConsonant
	}
	switch word & categoryMask {
	case catCc, catCf, catZl, catZp:
		return clControl
	case catCn:
		if r == 0x2065 || r >= 0xFFF0 && r <= 0xFFF8 || r >= 0xE0000 && r <= 0xE0FFF {
			return clControl // unassigned, ignorable by default
		}
	}
	return clOther
}

// extendsSpacing lists the spacing marks that extend a cluster like other marks (Other_Grapheme_Extend):
// it matters only for what may stand between a consonant and its linker.
func extendsSpacing(r rune) bool {
	switch r {
	case 0x9BE, 0x9D7, 0xB3E, 0xB57, 0xBBE, 0xBD7, 0xCC0, 0xCC2, 0xCC7, 0xCC8, 0xCCA, 0xCCB, 0xCD5, 0xCD6,
		0xD3E, 0xD57, 0xDCF, 0xDDF, 0x1B35, 0x302E, 0x302F:
		return true
	}
	return false
}
