"""Fine-tune a small encoder for intent detection with hand-written LoRA adapters."""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)

D_MODEL, N_HEADS, N_LAYERS, VOCAB, N_INTENTS = 512, 8, 6, 8000, 24


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r=8, alpha=16):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / r

    def forward(self, x):
        weight = self.base.weight + self.scaling * (self.lora_B @ self.lora_A)
        return F.linear(x, weight, self.base.bias)


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q_proj, self.k_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.v_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.fc1, self.fc2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        y = self.ln1(x)
        q, k, v = (p(y).view(b, t, self.h, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.o_proj(y)
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class IntentModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, D_MODEL)
        self.blocks = nn.ModuleList([Block(D_MODEL, N_HEADS) for _ in range(N_LAYERS)])
        self.head = nn.Linear(D_MODEL, N_INTENTS)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=1))


def add_lora(model, targets=("q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2")):
    for p in model.parameters():
        p.requires_grad = False
    for block in model.blocks:
        for name in targets:
            setattr(block, name, LoRALinear(getattr(block, name)))
    for p in model.head.parameters():
        p.requires_grad = True


model = IntentModel()
add_lora(model)
trainable = [p for p in model.parameters() if p.requires_grad]
print(f"trainable: {sum(p.numel() for p in trainable)} / {sum(p.numel() for p in model.parameters())}")
optimizer = torch.optim.AdamW(trainable, lr=2e-4, fused=True)

input_ids = torch.randint(0, VOCAB, (1024, 16))
labels = torch.randint(0, N_INTENTS, (1024,))
batch_size, steps = 8, 40
start = time.time()
for step in range(steps):
    idx = torch.randint(0, len(input_ids), (batch_size,))
    loss = F.cross_entropy(model(input_ids[idx]), labels[idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1} loss {loss.item():.3f} {(time.time() - start) / (step + 1) * 1e3:.1f} ms/step")
