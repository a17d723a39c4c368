package tokenize

// maxID bounds token ids, so that a broken file cannot ask for gigabytes of table.
const maxID = 1<<24 - 1

// vocab maps tokens to ids and back.
type vocab struct {
	ids    map[string]int32
	tokens []string // by id; "" where no token has the id
	given  []bool   // by id
}

func newVocab(n int) *vocab { return &vocab{ids: make(map[string]int32, n)} }

// set gives token the id; it is false when another token has it already.
func (v *vocab) set(token string, id int32) bool {
	for int(id) >= len(v.tokens) {
		v.tokens = append(v.tokens, "")
		v.given = append(v.given, false)
	}
	if v.given[id] && v.tokens[id] != token {
		return false
	}
	v.ids[token] = id
	v.tokens[id], v.given[id] = token, true
	return true
}

func (v *vocab) id(token string) (int32, bool) {
	id, ok := v.ids[token]
	return id, ok
}

func (v *vocab) token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(v.tokens) || !v.given[id] {
		return "", false
	}
	return v.tokens[id], true
}

// len is the number of tokens.
func (v *vocab) len() int { return len(v.ids) }
