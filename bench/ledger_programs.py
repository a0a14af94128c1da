"""Programs of `bench/ledger.py`, each a script that trains on random data, and the remedies that can apply to it."""

from __future__ import annotations

from dataclasses import dataclass

_USUAL = ("fused_optimizer", "autocast", "compile", "num_threads=2")
_LOADED = (*_USUAL, "workers=1", "batch=x2")
_HEAD = """import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
"""


@dataclass(frozen=True)
class LedgerProgram:
    text: str
    remedies: tuple[str, ...] = _USUAL


def _loop(model: str, batch: str, loss: str, optimizer: str = "torch.optim.Adam(model.parameters())") -> str:
    """A script that trains `model` on new random batches."""
    return f"""{_HEAD}
{model}
optimizer = {optimizer}
for step in range(200):
    {batch}
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


def _loaded(model: str, samples: str, loss: str, optimizer: str = "torch.optim.Adam(model.parameters())") -> str:
    """A script with a DataLoader over `samples`."""
    return f"""{_HEAD}
{model}
data = torch.utils.data.TensorDataset({samples})
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
optimizer = {optimizer}
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        loss = {loss}
        loss.backward()
        optimizer.step()
"""


_BERT = """from transformers import BertConfig, BertForSequenceClassification
model = BertForSequenceClassification(BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=3,
    num_attention_heads=4, intermediate_size=256))"""
_LLAMA = """from transformers import LlamaConfig, LlamaForCausalLM
model = LlamaForCausalLM(LlamaConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, intermediate_size=256))"""
_VIT = """from transformers import ViTConfig, ViTForImageClassification
model = ViTForImageClassification(ViTConfig(image_size=32, patch_size=4, hidden_size=96, num_hidden_layers=3,
    num_attention_heads=3, intermediate_size=192, num_labels=10))"""
_GNN = """class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.near = nn.Linear(width, width), nn.Linear(width, width)
    def forward(self, x, source, target):
        sums = torch.zeros_like(x).index_add_(0, target, self.near(x)[source])
        return F.relu(self.own(x) + sums)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleList(Layer(64) for _ in range(3)), nn.Linear(64, 7)
    def forward(self, x, source, target):
        for layer in self.layers:
            x = layer(x, source, target)
        return self.head(x)
model = Net()
x, source, target = torch.randn(2700, 64), torch.randint(0, 2700, (10500,)), torch.randint(0, 2700, (10500,))
wanted = torch.randint(0, 7, (2700,))"""
_LSTM = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.body = nn.Embedding(2000, 128), nn.LSTM(128, 128, 2, batch_first=True)
        self.head = nn.Linear(128, 2000)
    def forward(self, x):
        return self.head(self.body(self.words(x))[0])
model = Net()"""
_DLRM = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(5000, 16) for _ in range(16))
        self.top = nn.Sequential(nn.Linear(16 * 16, 256), nn.ReLU(), nn.Linear(256, 1))
    def forward(self, x):
        return self.top(torch.cat([table(x[:, place]) for place, table in enumerate(self.tables)], 1))
model = Net()"""
_UNET = """class Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())
    def forward(self, x):
        return self.body(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle, self.up, self.out = Block(3, 16), Block(16, 32), Block(48, 16), nn.Conv2d(16, 3, 1)
    def forward(self, x):
        first = self.down(x)
        deep = F.interpolate(self.middle(F.avg_pool2d(first, 2)), scale_factor=2)
        return self.out(self.up(torch.cat([first, deep], 1)))
model = Net()"""
_RL = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.policy, self.value = nn.Linear(64, 4), nn.Linear(64, 1)
    def forward(self, x):
        h = self.body(x)
        return F.log_softmax(self.policy(h), 1), self.value(h).squeeze(1)
model = Net()
def objective(states, actions, returns):
    logs, values = model(states)
    advantage = returns - values.detach()
    return -(logs.gather(1, actions[:, None]).squeeze(1) * advantage).mean() + F.mse_loss(values, returns)"""
_CNN = """model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(64, 10))"""
_TOKENS = "ids = torch.randint(0, 1000, (4, 48))"
_IMAGES = "torch.randn(2000, 3, 32, 32), torch.randint(0, 10, (2000,))"

PROGRAMS = {
    "bert": LedgerProgram(
        _loop(
            _BERT, _TOKENS, "model(input_ids=ids, labels=ids[:, 0] % 2).loss", "torch.optim.AdamW(model.parameters())"
        )
    ),
    "llama": LedgerProgram(_loop(_LLAMA, _TOKENS, "model(input_ids=ids, labels=ids).loss")),
    "vit": LedgerProgram(_loaded(_VIT, _IMAGES, "model(pixel_values=x, labels=y).loss"), _LOADED),
    "gnn": LedgerProgram(_loop(_GNN, "pass", "F.cross_entropy(model(x, source, target), wanted)")),
    "lstm": LedgerProgram(
        _loop(_LSTM, "x = torch.randint(0, 2000, (8, 33))", "F.cross_entropy(model(x[:, :-1]).mT, x[:, 1:])")
    ),
    "dlrm": LedgerProgram(
        _loaded(
            _DLRM,
            "torch.randint(0, 5000, (4000, 16)), torch.rand(4000, 1)",
            "F.binary_cross_entropy_with_logits(model(x), y)",
        ),
        _LOADED,
    ),
    "diffusion": LedgerProgram(
        _loop(
            _UNET, "x = torch.randn(8, 3, 32, 32); noise = torch.randn_like(x)", "F.mse_loss(model(x + noise), noise)"
        )
    ),
    "policy": LedgerProgram(
        _loop(
            _RL,
            "states, actions, returns = torch.randn(64, 16), torch.randint(0, 4, (64,)), torch.randn(64)",
            "objective(states, actions, returns)",
        )
    ),
    "cnn": LedgerProgram(
        _loaded(
            _CNN, _IMAGES, "F.cross_entropy(model(x), y)", "torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)"
        ),
        _LOADED,
    ),
}
