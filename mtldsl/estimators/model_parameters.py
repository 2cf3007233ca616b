"""A model as a hyperparameter, and its own parameters as further ones."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from mtldsl.errors import ModelError, MTLError
from mtldsl.estimators.penalties import statement_of
from mtldsl.estimators.stated import Stated, stated
from mtldsl.values.number import quoted

__all__ = ["ModelParameters"]


class ModelParameters(BaseEstimator):
    """Parameters of the model are parameters of the estimator: `get_params` lists them, `set_params` changes them."""

    #: values of the parameters of the estimator's own model
    _defaults: ClassVar[dict[str, float]] = {"lam": 1.0}

    model: Any
    loss: Any
    penalty: Any
    subject_to: Any

    def _stated(self) -> Stated:
        return stated(self._stated_model(), self.subject_to, self._defaults)

    def _stated_model(self) -> Any:
        """`model` as it was given, or the statement that `loss` and `penalty` name. ModelError where both were given."""
        if not hasattr(self, "penalty"):
            return self.model
        usual = inspect.signature(type(self)).parameters
        for name in ("loss", "penalty"):
            given = getattr(self, name)
            if not isinstance(given, str):
                raise ModelError(
                    term=f"{type(self).__name__}({name}={quoted(given)})",
                    write_instead=f"write its name, such as {name}={usual[name].default!r}",
                )
            if self.model is not None and given != usual[name].default:
                raise ModelError(
                    f"{name}={given!r} stands beside model={quoted(self.model, 60)}, which has its own {name}",
                    term=type(self).__name__,
                    write_instead="write one of the two",
                )
        if self.model is not None:
            return self.model
        return statement_of(self.loss, self.penalty, type(self).__name__)

    def _set(self, arguments: dict[str, Any]) -> None:
        """What the constructor was called with, as it was; parameters of the model stand apart, for scikit-learn expects no further
        attributes."""
        self._parameters = dict(arguments.pop("parameters"))
        for name, value in arguments.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def __getattr__(self, name: str):
        given = self.__dict__.get("_parameters", {})
        if name in given:
            return given[name]
        if hasattr(type(self), name):  # a method or property that said why it is not there: once more
            try:
                return object.__getattribute__(self, name)
            except AttributeError as error:
                raise (error.__cause__ or error) from None
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, and every parameter of the model: its value, its default, or None where it needs one."""
        found = super().get_params(deep)
        try:
            model = self._stated()
            found |= {name: model.defaults.get(name) for name in model.parameters}
        except MTLError:  # `fit` says what is wrong with the model
            pass
        return found | self._parameters

    def set_params(self, **params):
        """As scikit-learn's; a new model is set before its parameters. ValueError, naming the known ones, for others."""
        if "model" in params:
            self._change_model(params.pop("model"))
        own = self._get_param_names()
        mine = {name: value for name, value in params.items() if name.partition("__")[0] in own}
        super().set_params(**mine)
        known = self.get_params(deep=False)
        for name in params.keys() - mine.keys():
            if name not in known:
                raise ModelError(
                    f"Invalid parameter {name!r} for {type(self).__name__} with model={quoted(self._stated_model(), 60)}",
                    write_instead=f"valid parameters are {', '.join(known)}",
                )
        self._parameters |= {name: value for name, value in params.items() if name not in mine}
        return self

    def _change_model(self, model) -> None:
        """Another model. Parameters of the old one that have their defaults go with it: `clone` writes these out, and a search over models
        clones first."""
        try:
            old = self._stated()
            self.model = model
            kept = self._stated().parameters
        except MTLError:  # `fit` says what is wrong
            self.model = model
            return
        for name in list(self._parameters):
            if (
                name not in kept
                and name in old.parameters
                and self._parameters[name] == old.defaults.get(name)
            ):
                del self._parameters[name]

    def _values(self, model: Stated) -> dict[str, Any]:
        """The values of the model's parameters. ModelError for parameters that it does not have, and where one has no value."""
        given = {name: value for name, value in self._parameters.items() if value is not None}
        known = ", ".join(model.parameters) or "none"
        strange = [name for name in given if name not in model.parameters]
        if strange:
            raise ModelError(
                f"the model has no parameter {strange[0]!r}",
                term=f"{type(self).__name__}(model={quoted(self._stated_model(), 60)}, {strange[0]}={quoted(given[strange[0]])})",
                write_instead=f"its parameters: {known}",
            )
        values = {**model.defaults, **given}
        missing = [name for name in model.parameters if values.get(name) is None]
        if missing:
            raise ModelError(
                f"the model needs {' and '.join(missing)}",
                term=f"{type(self).__name__}(model={quoted(self._stated_model(), 60)})",
                write_instead=f"write {', '.join(f'{name}=...' for name in missing)}",
            )
        return values
