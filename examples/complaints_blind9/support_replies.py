"""Draft support replies with a small GPT-2; stop at phrases agreed with the help desk."""
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast,
                          StoppingCriteria, StoppingCriteriaList)

torch.set_num_threads(1)
STOP_PHRASES = ["\nCustomer:", "\nAgent:", "Kind regards", "<end of reply>"]


def build_tokenizer(size=8000):
    """Stands in for AutoTokenizer.from_pretrained, which needs a network."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(["<pad>", "<eos>"] + alphabet)}
    merges = []
    for a in alphabet:
        for b in alphabet:
            if len(vocab) >= size:
                break
            vocab.setdefault(a + b, len(vocab))
            merges.append((a, b))
    core = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>")


class StopOnPhrases(StoppingCriteria):
    def __init__(self, tokenizer, phrases, prompt_length):
        self.tokenizer = tokenizer
        self.phrases = phrases
        self.prompt_length = prompt_length

    def __call__(self, input_ids, scores, **kwargs):
        done = []
        for row in input_ids:
            reply = self.tokenizer.decode(row[self.prompt_length:], skip_special_tokens=True)
            done.append(any(phrase in reply for phrase in self.phrases))
        return torch.tensor(done, device=input_ids.device)


def load_tickets(tokenizer, count=32, length=24):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(2, len(tokenizer), (count, length), generator=generator)


@torch.inference_mode()
def main(batch=16, new_tokens=220):
    torch.manual_seed(0)
    tokenizer = build_tokenizer()
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=512, n_embd=128, n_layer=3, n_head=4,
                        bos_token_id=1, eos_token_id=1, pad_token_id=0)
    model = GPT2LMHeadModel(config).eval()
    tickets = load_tickets(tokenizer)
    replies = []
    for start in range(0, len(tickets), batch):
        prompt = tickets[start:start + batch]
        stopping = StoppingCriteriaList([StopOnPhrases(tokenizer, STOP_PHRASES, prompt.shape[1])])
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=new_tokens,
                             min_new_tokens=new_tokens // 2, do_sample=True, top_k=50, temperature=0.8,
                             stopping_criteria=stopping)
        replies += tokenizer.batch_decode(out[:, prompt.shape[1]:], skip_special_tokens=True)
        print(f"{len(replies)} replies, {out.shape[1]} tokens each")
    return replies


if __name__ == "__main__":
    main()
