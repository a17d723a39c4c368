"""One training step at the shape of MiniLM-L6 in PyTorch: forward, backward, clipping, AdamW.

The other side of BenchmarkStep; run both on the same quiet machine, one core each:

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python3 attention/train/peers/torch_step.py
    GOMAXPROCS=1 go test ./attention/train -run '^$' -bench '^BenchmarkStep$'
"""
import resource
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


for batch, tokens in ((16, 128), (8, 256)):
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
    began, cpu, steps = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < 15:
        step()
        steps += 1
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"PyTorch {batch} x {tokens}: {steps * batch * tokens / wall:.0f} tokens/s, {steps * batch * tokens / cpu:.0f} per CPU second, peak {peak} MiB")
