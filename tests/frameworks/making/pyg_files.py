"""Graphs and models of PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.nn import GCN

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, saved_as_if_on

OTHER = Truth().role("other")


def graph() -> Data:
    return Data(
        x=torch.randn(5, 4),
        edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]),
        edge_attr=torch.randn(4, 2),
        y=torch.tensor([0, 1, 0, 1, 1]),
        train_mask=torch.ones(5, dtype=torch.bool),
    )


@maker("pyg/data")
def data(out: Out) -> None:
    path = out.scratch / "data.pt"
    torch.save(graph(), path)
    out.add(path, "data.pt", OTHER)
    with saved_as_if_on("cuda:0"):
        torch.save([graph(), graph()], path)
    out.add(path, "list_cuda.pt", OTHER)
    torch.save(Batch.from_data_list([graph(), graph()]), path)
    out.add(path, "batch.pt", OTHER)
    torch.save(InMemoryDataset.collate([graph(), graph()]), path)
    out.add(path, "processed.pt", OTHER)
    torch.save(graph().to_dict(), path)
    out.add(path, "data_dict.pt", OTHER)
    hetero = HeteroData()
    hetero["user"].x = torch.randn(3, 4)
    hetero["item"].x = torch.randn(2, 4)
    hetero["user", "buys", "item"].edge_index = torch.tensor([[0, 1], [1, 0]])
    torch.save(hetero, path)
    out.add(path, "hetero.pt", OTHER)


@maker("pyg/training")
def training(out: Out) -> None:
    model: Any = GCN(4, 6, num_layers=2, out_channels=2)
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=5e-4)
    one = graph()
    model(one.x, one.edge_index).square().mean().backward()
    optimizer.step()
    path = out.scratch / "gcn.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "data": one}, path)
    truth = Truth().role("other").model(model, "model").optimizer(optimizer, model, "optimizer")
    out.add(path, "gcn_with_data.pt", truth)
