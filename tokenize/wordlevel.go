package tokenize

// wordLevel has whole pieces for tokens.
type wordLevel struct {
	vocab *vocab
	unk   int32
}

func (m *wordLevel) tokenize(s *scratch, p []byte) {
	id, ok := m.vocab.ids[string(p)]
	if !ok {
		id = m.unk
	}
	s.tokens = append(s.tokens, token{id, 0, int32(len(p))})
}

func (m *wordLevel) cached() bool                  { return false }
func (m *wordLevel) id(token string) (int32, bool) { return m.vocab.id(token) }
func (m *wordLevel) token(id int32) (string, bool) { return m.vocab.token(id) }
func (m *wordLevel) size() int                     { return m.vocab.len() }
func (m *wordLevel) maxID() int32                  { return int32(len(m.vocab.tokens) - 1) }
func (m *wordLevel) name() string                  { return "WordLevel" }

func readWordLevel(v value) (model, error) {
	voc, err := readVocabObject(v.get("vocab"))
	if err != nil {
		return nil, err
	}
	unkValue := v.get("unk_token")
	token, err := unkValue.strOr("<unk>")
	if err != nil {
		return nil, err
	}
	unk, ok := voc.id(token)
	if !ok {
		return nil, unkValue.errorf("the vocabulary has no %q", token)
	}
	return &wordLevel{voc, unk}, nil
}
