"""The log probabilities of the model to stay near to are computed with a graph."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Speaker(nn.Module):
    def __init__(self, words=400, width=96):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.mixed = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, text):
        return self.head(self.mixed(self.words(text))[0])


def likelihood(model, text):
    scores = model(text[:, :-1]).log_softmax(-1)
    return scores.gather(2, text[:, 1:, None]).squeeze(2).sum(1)


def preference_loss(policy, reference, chosen, rejected):
    ours = likelihood(policy, chosen) - likelihood(policy, rejected)
    theirs = likelihood(reference, chosen) - likelihood(reference, rejected)  # problem
    return -nn.functional.logsigmoid(0.1 * (ours - theirs.detach())).mean()


def main():
    policy, reference = Speaker(), Speaker()
    reference.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), foreach=True)
    for _ in range(25):
        chosen, rejected = torch.randint(0, 400, (8, 24)), torch.randint(0, 400, (8, 24))
        loss = preference_loss(policy, reference, chosen, rejected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
