package main

import "math"

// queueNames are the shop's queues; testdata/crumb/README.md says what belongs where.
var queueNames = [...]string{
	"refunds",
	"late deliveries",
	"general feedback",
	"order changes",
	"allergy questions",
	"payment problems",
	"custom orders",
	"website and account",
	"wholesale",
	"careers",
}

const (
	refunds        = 0
	lateDeliveries = 1
)

// queueNumber returns a queue's index, or -1.
func queueNumber(name string) int {
	for i, q := range queueNames {
		if q == name {
			return i
		}
	}
	return -1
}

// A season is a queue's share of a week's mail: base, its swing over the year with
// the ISO week of its height, and what it gains a year.
type season struct{ base, swing, height, yearly float64 }

var seasons = [len(queueNames)]season{
	{.22, .15, 2, 0},     // refunds: after the holidays
	{.18, .35, 50, .02},  // late deliveries: before Christmas
	{.14, .10, 26, 0},    //
	{.13, .20, 48, 0},    //
	{.10, .15, 36, .01},  // allergy questions: a new school year
	{.08, .10, 1, .01},   //
	{.06, .45, 12, 0},    // custom orders: the summer's weddings are ordered in spring
	{.05, .10, 40, .005}, //
	{.03, .20, 38, 0},    //
	{.03, .30, 34, 0},    // careers: the end of school
}

// shares returns the queues' weights in a week. They drift: no two weeks have the same.
func shares(w isoWeek) (s [len(queueNames)]float64) {
	years := float64(w.year-2026) + float64(w.week)/52
	for i, q := range seasons {
		s[i] = q.base*(1+q.swing*math.Cos(2*math.Pi*(float64(w.week)-q.height)/52)) + q.yearly*years
		s[i] = max(s[i], .01)
	}
	return s
}

// A confounder is what makes a message hard for a router that reads words alone.
type confounder uint8

const (
	none    confounder = iota
	eggless            // a product named by what is not in it
	nutFree
	cold     // weather, illness, food, manners
	bank     // holiday, river, account
	pair     // "this is about A, not about B"
	negation // "I don't want to A, I want to B"
	swap     // "refund the cake, not the delivery"
	it       // the pronoun means the thing that went wrong
	passing  // another queue's words said in passing
	history  // another queue's matter, settled long ago
	confounders
)

var confounderNames = [confounders]string{
	"none", "eggless", "nut-free", "cold", "bank", "pair", "negation", "swap", "it", "passing", "history",
}

// confounderWeights share out the messages that have one.
var confounderWeights = [confounders]float64{
	eggless: 4.5, nutFree: 3.5, cold: 4, bank: 4,
	pair: 2.5, negation: 4, swap: 3.5, it: 3.5, passing: 6, history: 6,
}

// voice is a way of writing.
type voice uint8

const (
	plain voice = iota
	polite
	terse
	angry
	rambling
	nonNative
	phone
	voices
)

var voiceNames = [voices]string{"plain", "polite", "terse", "angry", "rambling", "non-native", "phone"}

// voiceWeights depend on how much there is to say: nobody is terse in 300 words.
var voiceWeights = [3][voices]float64{
	{plain: 20, polite: 10, terse: 22, angry: 10, nonNative: 9, phone: 20},               // under 40 words
	{plain: 28, polite: 22, terse: 3, angry: 12, rambling: 8, nonNative: 12, phone: 12},  // under 190
	{plain: 22, polite: 20, terse: 0, angry: 9, rambling: 32, nonNative: 11, phone: 4.5}, // the long ones
}

// Words of a message are log-normal: a median of 70 and the sigma below put about 15 %
// over 190 words, which is where 256 WordPiece tokens end.
const (
	sigmaWords  = .90
	fewestWords = 6
	mostWords   = 620
)

// wordsWanted draws the length of a message; mail grows longer towards Christmas.
func wordsWanted(r *random, w isoWeek, median float64) int {
	median *= 1 + .08*math.Cos(2*math.Pi*(float64(w.week)-50)/52)
	n := int(math.Exp(math.Log(median) + sigmaWords*r.normal()))
	return min(max(n, fewestWords), mostWords)
}
