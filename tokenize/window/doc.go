// Package window decides which tokens of a message a router reads when there are more than its cap.
//
// A cap counts the specials, as in the Hugging Face library: with a cap of 512 and two specials, 510
// tokens of the message are read. A message of exactly the cap is not cut. What was cut is data: a
// Plan holds the kept and the dropped ranges beside the windows.
package window
