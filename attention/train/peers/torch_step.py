"""One training step at the shape of MiniLM-L6 in PyTorch: forward, backward, clipping, AdamW.

The other side of BenchmarkStep; compare.sh runs both. Arguments: messages, tokens, seconds.
"""
import resource
import sys
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)


class Classifier(nn.Module):
    def __init__(self, vocabulary=30522, width=384, heads=12, wide=1536, layers=6, queues=8):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(512, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, wide, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.pool = nn.Linear(width, width)
        self.classify = nn.Linear(width, queues)

    def forward(self, ids):
        at = torch.arange(ids.shape[1])[None]
        x = self.norm(self.words(ids) + self.positions(at) + self.types(torch.zeros_like(ids)))
        return self.classify(torch.tanh(self.pool(self.layers(x)[:, 0])))


batch, tokens, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01)
ids = torch.randint(0, 30522, (batch, tokens))
labels = torch.arange(batch) % 8


def step():
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(ids), labels).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


step()
began, cpu, steps, best = time.perf_counter(), time.process_time(), 0, float("inf")
while time.perf_counter() - began < seconds or steps < 3:
    start = time.perf_counter()
    step()
    best = min(best, time.perf_counter() - start)
    steps += 1
cpu = time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // 1000000
print(batch * tokens / best, "best-tokens/s", steps * batch * tokens / cpu, "tokens/CPU-s", peak, "peak-MB")
