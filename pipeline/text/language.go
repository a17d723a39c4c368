package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// languageBytes is how much of a text is looked at: enough for a stable guess, little to pay.
const languageBytes = 1000

// stopWords are frequent words that few of the other languages share.
var stopWords = func() map[string]string {
	m := make(map[string]string)
	for lang, words := range map[string]string{
		"en": "the and you that with have this for not are was but they from what your would there which been will about when just",
		"de": "und der die das ist nicht ich sie mit ein eine den dem auf für von wir ihr sich auch es noch bitte habe aber wie wird",
		"fr": "le les et des est pas vous je une dans pour que qui sur avec nous mon votre plus mais bonjour merci suis être au du",
		"es": "el los las que no una por para con su mi lo pero como más gracias hola está pedido este ha muy usted me",
		"it": "il che di non per una sono con mi del della ho è gli ma come grazie buongiorno mio questo anche più nel alla",
		"pt": "não que uma para com os do da em meu mas como você por mais obrigado obrigada olá foi são está ao eu seu",
		"nl": "het een en van ik niet dat is op te voor met zijn heb mijn maar aan bij ook nog graag bestelling wij deze hebben",
	} {
		for _, w := range strings.Fields(words) {
			if other, ok := m[w]; ok && other != lang {
				m[w] = "" // shared by two: tells nothing
			} else {
				m[w] = lang
			}
		}
	}
	return m
}()

// longestStopWord is the length in bytes of the longest stop word.
const longestStopWord = 10

// scripts that tell a language by themselves.
var scripts = []struct {
	table *unicode.RangeTable
	lang  string
}{
	{unicode.Hiragana, "ja"}, {unicode.Katakana, "ja"}, {unicode.Hangul, "ko"}, {unicode.Han, "zh"}, {unicode.Cyrillic, "ru"},
	{unicode.Greek, "el"}, {unicode.Hebrew, "he"}, {unicode.Arabic, "ar"}, {unicode.Thai, "th"},
}

// language guesses the language of a text by its script, or by its most frequent words; empty when
// fewer than three words speak for one, or a second comes near.
func language(s string) string {
	s = s[:min(len(s), languageBytes)]
	counts := make(map[string]int, 8)
	var word [longestStopWord + utf8.UTFMax]byte
	n, letters, foreign := 0, 0, 0
	byScript := make(map[string]int)
	for i := 0; i <= len(s); {
		if i < len(s) { // ASCII letters, most of most texts
			if c := s[i] | 0x20; c >= 'a' && c <= 'z' {
				letters++
				if n < len(word) {
					word[n] = c
				}
				n++
				i++
				continue
			}
		}
		r, size := ' ', 1
		if i < len(s) {
			if r = rune(s[i]); r >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(s[i:])
			}
		}
		if unicode.IsLetter(r) {
			letters++
			if r > 0x250 {
				foreign++
				for _, sc := range scripts {
					if unicode.Is(sc.table, r) {
						byScript[sc.lang]++
						break
					}
				}
			}
			r = unicode.ToLower(r)
			if n+utf8.RuneLen(r) <= len(word) {
				n += utf8.EncodeRune(word[n:], r)
			} else {
				n = len(word) + 1
			}
		} else {
			if n > 0 && n <= longestStopWord {
				if lang := stopWords[string(word[:n])]; lang != "" {
					counts[lang]++
				}
			}
			n = 0
		}
		i += size
	}
	if foreign*2 > letters {
		if byScript["ja"] > 0 { // Han is Chinese only without kana
			return "ja"
		}
		return most(byScript, 1)
	}
	return most(counts, 3)
}

// most is the key with the largest count, if it reaches least and is half again as large as the
// next.
func most(counts map[string]int, least int) string {
	best, first, second := "", 0, 0
	for k, n := range counts {
		if n > first || n == first && k < best {
			best, first, second = k, n, max(first, second)
		} else {
			second = max(second, n)
		}
	}
	if first < least || first*2 < second*3 {
		return ""
	}
	return best
}
